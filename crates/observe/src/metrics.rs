//! Counters, gauges and histograms. Counters are atomics; each histogram takes its own short lock.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use switchyard_core::run::{EndStatus, Event, EventKind, Run};

use crate::about::{self, About, PREFIX};
use crate::commit::Lag;
use crate::maybe::Maybe;
use crate::workflows::Workflows;

/// Histogram bounds in seconds, from an answer out of memory to a slow disk.
const SHORT: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Histogram bounds in seconds, from an empty step to a long call of an agent.
const LONG: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0, 1800.0];

/// All metrics of this process, counted since it started.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    runs_accepted: Counter,
    ended: Each<3>,
    workflows: Workflows,
    steps: Each<7>,
    step_duration: Histograms<ExecutionLabels>,
    claims: Family<KindLabels, Counter>,
    queue_wait: Histograms<KindLabels>,
    timers_fired: Counter,
    leases_reclaimed: Counter,
    consumer_scans: Counter,
    ghosts_found: Counter,
    ghosts_deleted: Counter,
    entries_moved: Each<3>,
    cleanup_errors: Counter,
    long_pending: Family<DepthLabels, Gauge>,
    schedule_starts: Counter,
    pub(crate) archive_events: Counter,
    pub(crate) archive_commit: Histogram,
    pub(crate) lag: Lag,
    runs_taken_up: Counter,
    redis_errors: Family<ReasonLabels, Counter>,
    redis_reconnects: Counter,
    /// Set only in processes that have a Redis or an archive to watch.
    redis_up: Maybe<i64>,
    archive_up: Maybe<i64>,
    archive_bound: Maybe<i64>,
    outbox_buried: Counter,
    requests: Family<RequestLabels, Counter>,
    request_duration: Histograms<RouteLabels>,
    tasks_claimed: Counter,
    tasks_settled: Family<OutcomeLabels, Counter>,
    signals: Family<OutcomeLabels, Counter>,
    pub(crate) spans_exported: Counter,
    pub(crate) spans_dropped: Counter,
    shown: Shown,
}

/// Gauges that are set when the page is requested, by one request at a time.
#[derive(Debug)]
struct Shown {
    one_at_a_time: Mutex<()>,
    runs: Maybe<i64>,
    timers: Maybe<i64>,
    depths: Family<DepthLabels, Gauge>,
    pending: Maybe<i64>,
    lag: Maybe<f64>,
    stuck: Maybe<i64>,
    memory: Gauge,
}

/// The values of gauges that only the store knows.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub runs: usize,
    pub timers: usize,
    /// Queue, priority, depth.
    pub depths: Vec<(Arc<str>, &'static str, usize)>,
    /// How far the archive is behind, if the store ships to it.
    pub behind: Option<Behind>,
}

/// Changes that are not in the archive yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behind {
    pub changes: usize,
    pub oldest: Duration,
    /// The oldest change has waited for too long.
    pub stuck: bool,
}

type Histograms<L> = Family<L, Histogram, Bounds>;

/// Constructs the histograms of a family with these bounds.
#[derive(Clone, Copy, Debug)]
struct Bounds(&'static [f64]);

impl MetricConstructor<Histogram> for Bounds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Counters for a fixed set of label values, found by index instead of by lookup.
type Each<const N: usize> = [Counter; N];

const HOWS: [&str; 3] = ["returned", "claimed", "void"];
pub(crate) const STATUSES: [&str; 3] = ["succeeded", "failed", "cancelled"];
const OUTCOMES: [&str; 7] =
    ["succeeded", "failed", "retrying", "skipped", "waiting", "released", "cancelled"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExecutionLabels {
    kind: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HowLabels {
    how: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DepthLabels {
    queue: Arc<str>,
    priority: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
    method: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let r = &mut registry;
        let statuses: Family<StatusLabels, Counter> = register(r, about::RUNS_ENDED, Family::default());
        let hows: Family<HowLabels, Counter> = register(r, about::ENTRIES_MOVED, Family::default());
        let outcomes: Family<OutcomeLabels, Counter> = register(r, about::STEPS, Family::default());
        Self {
            runs_accepted: register(r, about::RUNS_ACCEPTED, Counter::default()),
            ended: STATUSES.map(|status| statuses.get_or_create_owned(&StatusLabels { status })),
            workflows: Workflows::register(r),
            steps: OUTCOMES.map(|outcome| outcomes.get_or_create_owned(&OutcomeLabels { outcome })),
            step_duration: histograms(r, about::STEP_DURATION, &LONG),
            claims: register(r, about::CLAIMS, Family::default()),
            queue_wait: histograms(r, about::QUEUE_WAIT, &LONG),
            timers_fired: register(r, about::TIMERS_FIRED, Counter::default()),
            leases_reclaimed: register(r, about::LEASES_RECLAIMED, Counter::default()),
            consumer_scans: register(r, about::CONSUMER_SCANS, Counter::default()),
            ghosts_found: register(r, about::GHOSTS_FOUND, Counter::default()),
            ghosts_deleted: register(r, about::GHOSTS_DELETED, Counter::default()),
            entries_moved: HOWS.map(|how| hows.get_or_create_owned(&HowLabels { how })),
            cleanup_errors: register(r, about::CLEANUP_ERRORS, Counter::default()),
            long_pending: register(r, about::LONG_PENDING, Family::default()),
            schedule_starts: register(r, about::SCHEDULE_STARTS, Counter::default()),
            archive_events: register(r, about::ARCHIVE_EVENTS, Counter::default()),
            archive_commit: register(r, about::ARCHIVE_COMMIT, Bounds(&SHORT).new_metric()),
            lag: Lag::default(),
            runs_taken_up: register(r, about::RUNS_TAKEN_UP, Counter::default()),
            redis_errors: register(r, about::REDIS_ERRORS, Family::default()),
            redis_reconnects: register(r, about::REDIS_RECONNECTS, Counter::default()),
            redis_up: register(r, about::REDIS_UP, Maybe::default()),
            archive_up: register(r, about::ARCHIVE_UP, Maybe::default()),
            archive_bound: register(r, about::ARCHIVE_BOUND, Maybe::default()),
            outbox_buried: register(r, about::OUTBOX_BURIED, Counter::default()),
            requests: register(r, about::HTTP_REQUESTS, Family::default()),
            request_duration: histograms(r, about::HTTP_DURATION, &SHORT),
            tasks_claimed: register(r, about::TASKS_CLAIMED, Counter::default()),
            tasks_settled: register(r, about::TASKS_SETTLED, Family::default()),
            signals: register(r, about::SIGNALS, Family::default()),
            spans_exported: register(r, about::SPANS_EXPORTED, Counter::default()),
            spans_dropped: register(r, about::SPANS_DROPPED, Counter::default()),
            shown: Shown {
                one_at_a_time: Mutex::default(),
                runs: register(r, about::RUNS_IN_FLIGHT, Maybe::default()),
                timers: register(r, about::TIMERS, Maybe::default()),
                depths: register(r, about::QUEUE_DEPTH, Family::default()),
                pending: register(r, about::ARCHIVE_PENDING, Maybe::default()),
                lag: register(r, about::ARCHIVE_LAG, Maybe::default()),
                stuck: register(r, about::ARCHIVE_STUCK, Maybe::default()),
                memory: register(r, about::MEMORY, Gauge::default()),
            },
            registry,
        }
    }
}

fn register<M: Metric + Clone>(registry: &mut Registry, about: About, metric: M) -> M {
    registry.register(about.name, about.help, metric.clone());
    metric
}

fn histograms<L>(registry: &mut Registry, about: About, bounds: &'static [f64]) -> Histograms<L>
where
    L: Clone + Debug + Eq + Hash + EncodeLabelSet + Send + Sync + 'static,
{
    register(registry, about, Family::new_with_constructor(Bounds(bounds)))
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

impl Metrics {
    /// Counts journalled events.
    pub(crate) fn happened(&self, events: &[Event]) {
        for event in events {
            match &event.kind {
                EventKind::RunAccepted(accepted) => {
                    self.workflows.accepted(event.run, &accepted.workflow);
                    self.runs_accepted.inc()
                }
                EventKind::RunEnded { status, .. } => {
                    let index = status_index(*status);
                    self.workflows.ended(event.run, STATUSES[index]);
                    self.ended[index].inc()
                }
                kind => match outcome_index(kind) {
                    Some(outcome) => self.steps[outcome].inc(),
                    None => continue,
                },
            };
        }
    }

    /// Remembers the workflow of a run that this process resumes.
    pub(crate) fn took_up(&self, run: &Run) {
        self.workflows.begun(run.id, &run.ir.name);
    }

    /// Counts a step that was handed to a worker.
    pub fn claimed_step(&self, queue: &str, waited: Duration) {
        let labels = KindLabels { kind: kind(queue).to_owned() };
        self.claims.get_or_create(&labels).inc();
        self.queue_wait.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    /// Records the execution of a step, in this process or by a worker over HTTP.
    pub fn executed(&self, queue: &str, outcome: &'static str, took: Duration) {
        let labels = ExecutionLabels { kind: kind(queue).to_owned(), outcome };
        self.step_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub fn timers_fired(&self, timers: usize) {
        self.timers_fired.inc_by(timers as u64);
    }

    pub fn reclaimed(&self, claims: usize) {
        self.leases_reclaimed.inc_by(claims as u64);
    }

    /// Counts a scan that compared the members of the consumer group with the live workers.
    pub fn consumers_scanned(&self, ghosts_found: usize, ghosts_deleted: usize, errors: usize) {
        self.consumer_scans.inc();
        self.ghosts_found.inc_by(ghosts_found as u64);
        self.ghosts_deleted.inc_by(ghosts_deleted as u64);
        self.cleanup_errors.inc_by(errors as u64);
    }

    /// Counts a scan that failed as a whole.
    pub fn consumer_scan_failed(&self) {
        self.cleanup_errors.inc();
    }

    /// Counts the pending entries of a removed consumer: returned, claimed or void.
    pub fn entries_moved(&self, returned: usize, claimed: usize, void: usize) {
        for (counter, entries) in self.entries_moved.iter().zip([returned, claimed, void]) {
            counter.inc_by(entries as u64);
        }
    }

    /// Sets the number of long-pending entries of each queue and priority.
    pub fn long_pending(&self, entries: &[(Arc<str>, &'static str, usize)]) {
        self.long_pending.clear();
        for (queue, priority, count) in entries {
            let labels = DepthLabels { queue: queue.clone(), priority };
            self.long_pending.get_or_create(&labels).set(*count as i64);
        }
    }

    /// Counts runs that were rebuilt from their histories.
    pub fn taken_up(&self, runs: usize) {
        self.runs_taken_up.inc_by(runs as u64);
    }

    pub fn redis_is_up(&self, up: bool) {
        self.redis_up.set(i64::from(up));
    }

    pub fn redis_failed(&self, reason: &'static str) {
        self.redis_errors.get_or_create(&ReasonLabels { reason }).inc();
    }

    pub fn redis_reconnected(&self) {
        self.redis_reconnects.inc();
    }

    pub fn archive_is_up(&self, up: bool) {
        self.archive_up.set(i64::from(up));
    }

    /// Sets whether Redis is bound to the archive of this process.
    pub fn archive_is_bound(&self, bound: bool) {
        self.archive_bound.set(i64::from(bound));
    }

    /// Counts an outbox entry that could not be archived.
    pub fn outbox_entry_buried(&self) {
        self.outbox_buried.inc();
    }

    pub fn schedule_started(&self) {
        self.schedule_starts.inc();
    }

    /// Records a request. `route` is the pattern and not the path, so that there are few label values.
    pub fn request(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let route = route.to_owned();
        self.requests.get_or_create(&RequestLabels { route: route.clone(), method, status }).inc();
        self.request_duration.get_or_create(&RouteLabels { route, method }).observe(took.as_secs_f64());
    }

    /// Counts tasks handed to workers over HTTP.
    pub fn claimed(&self, tasks: usize) {
        self.tasks_claimed.inc_by(tasks as u64);
    }

    /// Counts a task that a worker over HTTP has settled, by outcome.
    pub fn settled(&self, outcome: &'static str) {
        self.tasks_settled.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// Counts a signal of a plain worker, by outcome.
    pub fn signalled(&self, outcome: &'static str) {
        self.signals.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// The page that Prometheus scrapes; without the store's gauges if the store did not answer.
    pub fn page(&self, gauges: Option<&Gauges>) -> String {
        let _one = self.shown.one_at_a_time.lock();
        self.shown.clear();
        if let Some(gauges) = gauges {
            self.show(gauges);
        }
        self.shown.memory.set(resident_bytes().unwrap_or(0));
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut page, &self.registry);
        page
    }

    fn show(&self, gauges: &Gauges) {
        let shown = &self.shown;
        shown.runs.set(gauges.runs as i64);
        shown.timers.set(gauges.timers as i64);
        for (queue, priority, depth) in &gauges.depths {
            let labels = DepthLabels { queue: queue.clone(), priority };
            shown.depths.get_or_create(&labels).set(*depth as i64);
        }
        let own = || Behind { changes: self.lag.pending(), oldest: self.lag.behind(), stuck: false };
        if let Some(behind) = gauges.behind {
            shown.stuck.set(i64::from(behind.stuck));
        }
        let behind = gauges.behind.unwrap_or_else(own);
        shown.pending.set(behind.changes as i64);
        shown.lag.set(behind.oldest.as_secs_f64());
    }
}

impl Shown {
    fn clear(&self) {
        self.runs.clear();
        self.timers.clear();
        self.depths.clear();
        self.pending.clear();
        self.lag.clear();
        self.stuck.clear();
    }
}

/// The kind of task of a queue: `function` for `function.gpu`.
fn kind(queue: &str) -> &str {
    queue.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or(queue)
}

fn status_index(status: EndStatus) -> usize {
    match status {
        EndStatus::Succeeded => 0,
        EndStatus::Failed => 1,
        EndStatus::Cancelled => 2,
    }
}

fn outcome_index(kind: &EventKind) -> Option<usize> {
    Some(match kind {
        EventKind::NodeSucceeded { .. } => 0,
        EventKind::NodeFailed { .. } => 1,
        EventKind::NodeRetrying { .. } => 2,
        EventKind::NodeSkipped { .. } => 3,
        EventKind::NodeWaiting { .. } => 4,
        EventKind::NodeReleased { .. } => 5,
        EventKind::NodeCancelled { .. } => 6,
        _ => return None,
    })
}
