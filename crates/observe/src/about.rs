//! Every metric, and the page about them.

use std::fmt::{self, Write};

/// What is known about a metric beside its values.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Without the prefix `switchyard_`, and without the suffixes that the format adds.
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

pub(crate) const PREFIX: &str = "switchyard";

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(pub(crate) const $constant: About =
            About { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)+

        /// In the order of the page.
        pub const METRICS: &[About] = &[$($constant),+];
    };
}

metrics! {
    RUNS_ACCEPTED = Counter "runs_accepted" [] "Runs taken in, those that other runs started included";
    RUNS_ENDED = Counter "runs_ended" ["status"] "Runs that ended: succeeded, failed, cancelled";
    WORKFLOW_RUNS_ACCEPTED = Counter "workflow_runs_accepted" ["workflow"]
        "Runs taken in, by workflow. The first 100 names that this process meets have a series each, the rest is `other`";
    WORKFLOW_RUNS_ENDED = Counter "workflow_runs_ended" ["workflow", "status"]
        "Runs that ended, by workflow; `unknown` if this process did not see the run begin";
    RUNS_IN_FLIGHT = Gauge "runs_in_flight" [] "Runs that have not ended";
    STEPS = Counter "steps" ["outcome"]
        "What became of claimed steps, and of what they waited for: succeeded, failed, retrying, skipped, waiting, released, cancelled";
    STEP_DURATION = Histogram "step_duration_seconds" ["kind", "outcome"]
        "Executing a step, from its claim until its outcome was known, for steps of this process and of workers over HTTP";
    CLAIMS = Counter "claims" ["kind"] "Steps handed to workers";
    QUEUE_WAIT = Histogram "queue_wait_seconds" ["kind"] "From ready to claimed, to the millisecond";
    QUEUE_DEPTH = Gauge "queue_depth" ["queue", "priority"] "Steps that wait for a worker";
    TIMERS = Gauge "timers" [] "Timers that are set";
    TIMERS_FIRED = Counter "timers_fired" [] "Timers that came due";
    LEASES_RECLAIMED = Counter "leases_reclaimed" [] "Claims taken back from workers that were silent too long, or whose attempt took too long";
    CONSUMER_SCANS = Counter "consumer_scans" [] "Passes in which members of the group were compared with living workers";
    GHOSTS_FOUND = Counter "ghost_consumers_found" [] "Members of the group without a worker, each time that one was seen";
    GHOSTS_DELETED = Counter "ghost_consumers_deleted" [] "Ghosts that were taken out of the group of a stream";
    ENTRIES_MOVED = Counter "pending_entries_moved" ["how"]
        "Pending entries taken from ghosts and from workers that leave: returned to the stream, claimed for a living worker, or void and dropped";
    CLEANUP_ERRORS = Counter "consumer_cleanup_errors" [] "Passes and ghosts that a pass could not do anything about";
    LONG_PENDING = Gauge "long_pending_entries" ["queue", "priority"]
        "Entries pending for longer than `consumers.message_lock`, when this process looked last";
    SCHEDULE_STARTS = Counter "schedule_starts" [] "Runs that schedules started";
    ARCHIVE_EVENTS = Counter "archive_events" [] "Events made durable";
    ARCHIVE_COMMIT = Histogram "archive_commit_seconds" [] "From handing events to the archive until they were durable";
    ARCHIVE_PENDING = Gauge "archive_pending_events" []
        "Events handed to the archive and not durable yet; with Redis, changes that lie in its outbox, of an event or a few each";
    ARCHIVE_LAG = Gauge "archive_lag_seconds" []
        "How far what is durable is behind what has happened; 0 if nothing is pending";
    ARCHIVE_UP = Gauge "archive_up" []
        "Whether the archive took what it was last given, 1 or 0; where what is in flight is in Redis";
    ARCHIVE_STUCK = Gauge "archive_stuck" []
        "Whether a change has waited in the outbox for longer than `stores.stuck_after`, 1 or 0; `switchyard doctor` says why";
    ARCHIVE_BOUND = Gauge "archive_bound" []
        "Whether Redis belongs to the archive of this process, 1 or 0: at 0 the process does nothing";
    OUTBOX_BURIED = Counter "outbox_entries_buried" []
        "Entries of the outbox that could not be archived and are dead letters; their runs were rebuilt";
    REDIS_UP = Gauge "redis_up" [] "Whether Redis did what it was last asked, 1 or 0; where what is in flight is there";
    REDIS_ERRORS = Counter "redis_errors" ["reason"]
        "Calls that Redis did not carry out: unreachable, loading, read_only, moved, full, unsafe, login, forbidden, busy";
    REDIS_RECONNECTS = Counter "redis_reconnects" [] "Connections to Redis made anew, after the first";
    RUNS_TAKEN_UP = Counter "runs_taken_up" []
        "Runs rebuilt from their histories: at start, after a loss of Redis, for a retry";
    MEMORY = Gauge "resident_memory_bytes" []
        "Memory of this process, as the kernel counts it; 0 where there is no `/proc`";
    HTTP_REQUESTS = Counter "http_requests" ["route", "method", "status"] "Requests answered";
    HTTP_DURATION = Histogram "http_request_duration_seconds" ["route", "method"] "From request to the head of its answer";
    TASKS_CLAIMED = Counter "tasks_claimed" [] "Tasks handed to workers over HTTP";
    TASKS_SETTLED = Counter "tasks_settled" ["outcome"] "What workers over HTTP said, and whether it counted";
    SIGNALS = Counter "signals" ["outcome"]
        "What plain Redis workers signalled: applied, stale (it said nothing new, or came too late), malformed";
    SPANS_EXPORTED = Counter "spans_exported" [] "Spans that the collector took";
    SPANS_DROPPED = Counter "spans_dropped" [] "Spans given up: the collector did not take them, or too many waited";
}

impl About {
    /// As it is named on the page, apart from what a histogram appends.
    pub fn full_name(&self) -> String {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{PREFIX}_{}{suffix}", self.name)
    }
}

/// `docs/reference/metrics.md`
pub fn reference() -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut page);
    page
}

fn write(page: &mut String) -> fmt::Result {
    writeln!(
        page,
        "# Metrics\n\n`GET /metrics` of a server answers them in the text format of OpenMetrics, which Prometheus reads. \
         They\nare counted since the process started; gauges are read when they are asked for.\n\n`kind` is the type \
         of worker that executes a step: `http`, `function`, `command`, `transform`, `flow` (map,\nloop, workflow), \
         `timer`, `hitl`, `builtin`. Histograms have `_bucket`, `_sum` and `_count`.\n\n\
         | metric | type | labels | what |\n|---|---|---|---|"
    )?;
    for about in METRICS {
        let labels: Vec<String> = about.labels.iter().map(|label| format!("`{label}`")).collect();
        let kind = format!("{:?}", about.kind).to_lowercase();
        writeln!(page, "| `{}` | {kind} | {} | {} |", about.full_name(), labels.join(", "), about.help)?;
    }
    Ok(())
}
