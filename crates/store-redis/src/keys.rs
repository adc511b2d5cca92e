//! Builds every key in Redis. `docs/reference/keys.md` documents the content of each.

use std::sync::Arc;

use switchyard_core::in_flight::takes;
use switchyard_core::ir::queue_name;
use switchyard_core::{ApprovalId, Hash, RunId};

/// The consumer group in which every worker reads tasks.
pub(crate) const GROUP: &str = "workers";

/// The prefixes of the streams of the high, normal and low band. Not suffixes: a queue's name may end in anything.
pub(crate) const BANDS: [&str; 3] = ["wf.high.", "wf.tasks.", "wf.low."];

/// The keys of one partition. Scripts themselves build the keys of runs that they find in streams, with the same
/// prefix: `scripts/includes/keys.lua`.
#[derive(Clone, Debug)]
pub struct Keys {
    begin: Arc<str>,
    /// The queues of functions that plain workers serve, or patterns: their tasks share a stream.
    plain: Arc<[Arc<str>]>,
}

impl Keys {
    /// The keys of a partition. With several partitions each key has a hash tag, so that all keys that a script
    /// touches share a slot of a cluster.
    pub fn new(prefix: &str, partition: u16, partitions: u16) -> Self {
        let tag = if partitions > 1 { format!("{{p{partition}}}:") } else { String::new() };
        Self { begin: format!("{prefix}{tag}").into(), plain: Arc::default() }
    }

    /// The same keys, except that tasks of these functions go to the stream that plain workers read. A name may end in
    /// `*`.
    pub fn with_plain_functions(self, functions: &[String]) -> Self {
        Self { plain: functions.iter().map(|name| queue_name::of_function(name)).collect(), ..self }
    }

    /// The queues of functions that plain workers serve, or patterns.
    pub(crate) fn plain_queues(&self) -> &[Arc<str>] {
        &self.plain
    }

    /// Whether tasks of this queue go to the stream that plain workers read.
    pub(crate) fn is_plain(&self, queue: &str) -> bool {
        takes(&self.plain, queue)
    }

    /// The prefix of every key.
    pub(crate) fn begin(&self) -> &str {
        &self.begin
    }

    fn name(&self, rest: &str) -> String {
        format!("{}{rest}", self.begin)
    }

    /// Hash: the state of a run. Also the channel on which changes to the run are published.
    pub fn run(&self, run: RunId) -> String {
        self.name(&format!("run:{run}"))
    }

    /// Hash: the nodes of a run, by id.
    pub fn dag(&self, run: RunId) -> String {
        self.name(&format!("dag:{run}"))
    }

    /// Hash: the input of a run, and the results of its nodes.
    pub fn context(&self, run: RunId) -> String {
        self.name(&format!("context:{run}"))
    }

    /// Hash: the commands that were applied to a run: operation id → hash of the command.
    pub fn operations(&self, run: RunId) -> String {
        self.name(&format!("operations:{run}"))
    }

    /// Hash: the children that a node starts, with fields `spec:<index>` and `end:<index>` for each.
    pub fn children(&self, run: RunId, node: &str) -> String {
        self.name(&format!("children:{run}:{node}"))
    }

    /// A large key under its temporary name, until the next commit renames it.
    pub(crate) fn staged(&self, key: &str, number: u64) -> String {
        format!("{key}:staged:{number:016x}")
    }

    /// Sorted set, by insertion time: lists of tokens that are still to be queued.
    pub fn ready(&self) -> String {
        self.name("wf.ready")
    }

    /// List: tokens of a run that became ready together, named after its member in [`Self::ready`].
    pub fn ready_list(&self, member: &str) -> String {
        self.name(&format!("ready:{}", member.replace(' ', ":")))
    }

    /// Set: children that are still to be cancelled: `<run> <1 to compensate, else 0> <stop by, in ms, or empty>`.
    pub fn cancels(&self) -> String {
        self.name("wf.cancels")
    }

    /// String: the text of a definition, for workers that execute its steps while the archive is unavailable.
    pub fn definition(&self, definition: Hash) -> String {
        self.name(&format!("definition:{}", definition.hex()))
    }

    /// String: a graph, which all runs on it share.
    pub fn ir(&self, definition: Hash) -> String {
        self.ir_of(&definition.hex())
    }

    /// The key of a graph by its hash in hex, as runs store it.
    pub(crate) fn ir_of(&self, hash: &str) -> String {
        self.name(&format!("ir:{hash}"))
    }

    /// Sorted set: hashes of graphs, by when a run was last put on them.
    pub fn graphs(&self) -> String {
        self.name("wf.graphs")
    }

    /// Set: every run that Redis has.
    pub fn runs(&self) -> String {
        self.name("wf.runs")
    }

    /// Stream: the tasks of a queue in a band. All queues of plain workers share one.
    pub fn tasks(&self, queue: &str, band: usize) -> String {
        let queue = if self.is_plain(queue) { queue_name::FUNCTION } else { queue };
        format!("{}{}{queue}", self.begin, BANDS[band])
    }

    /// Queue and band of a stream of tasks.
    pub(crate) fn queue_of<'s>(&self, stream: &'s str) -> Option<(&'s str, usize)> {
        let rest = stream.strip_prefix(&*self.begin)?;
        BANDS.iter().enumerate().find_map(|(band, begin)| Some((rest.strip_prefix(begin)?, band)))
    }

    /// Hash: stream of tasks → how many of them are unclaimed.
    pub fn queued(&self) -> String {
        self.name("wf.queued")
    }

    /// Stream: events that the archive does not have yet, an entry for each change.
    pub fn outbox(&self) -> String {
        self.name("wf.outbox")
    }

    /// Hash: the archive that this Redis belongs to, its position at the last comparison, and the reason why the outbox
    /// could not be shipped.
    pub fn archive(&self) -> String {
        self.name("wf.archive")
    }

    /// Sorted set, by due time: `<run> <claim> <node>`, or `<run> deadline`.
    pub fn timers(&self) -> String {
        self.name("wf.timers")
    }

    /// Sorted set, by the end of the lease: `<run> <claim> <node>`.
    pub fn leases(&self) -> String {
        self.name("wf.leases")
    }

    /// Hash: `<run> <incarnation>` → 1, for incarnations whose events in the outbox contradict the archive.
    pub fn forgotten(&self) -> String {
        self.name("wf.forgotten")
    }

    /// Hash: the state of a concurrency key.
    pub fn concurrency_key(&self, key: &str) -> String {
        self.name(&format!("gate:{key}"))
    }

    /// Sorted set: the runs that hold a concurrency key (score 0), and those that wait for it (score: arrival). The
    /// prefix differs because a key may end in anything.
    pub fn concurrency_line(&self, key: &str) -> String {
        self.name(&format!("gate.line:{key}"))
    }

    /// Hash: the run that was submitted with an idempotency key, and the hash of its body.
    pub fn idempotency(&self, key: &str) -> String {
        self.name(&format!("idempotency:{key}"))
    }

    /// Hash: a pending approval.
    pub fn approval(&self, approval: &ApprovalId) -> String {
        self.name(&format!("approval:{approval}"))
    }

    /// Hash: the lock of the process that ships the outbox, with its fencing number.
    pub fn ship_lock(&self) -> String {
        self.name("wf.lock:outbox")
    }

    /// Set: every stream of tasks that a graph in Redis has had nodes for.
    pub fn streams(&self) -> String {
        self.name("wf.streams")
    }

    /// Sorted set: names of workers, by the time until which they count as alive.
    pub fn workers(&self) -> String {
        self.name("wf.workers")
    }

    /// Hash: the last report of a worker.
    pub fn worker(&self, name: &str) -> String {
        self.name(&format!("worker:{name}"))
    }

    /// Hash: the lock of the process that removes ghosts from the consumer groups, with its fencing number.
    pub fn cleanup_lock(&self) -> String {
        self.name("wf.lock:consumers")
    }

    /// Hash: the lock of the process that looks for long-pending entries, with its fencing number.
    pub fn watch_lock(&self) -> String {
        self.name("wf.lock:streams")
    }

    /// List: signals of plain workers about their tasks.
    pub fn signals(&self) -> String {
        self.name("completion_signals")
    }

    /// List: signals that a process has taken and not settled yet.
    pub fn processing(&self, mover: &str) -> String {
        self.name(&format!("completion_signals:processing:{mover}"))
    }

    /// Hash: process → when it last took signals.
    pub fn movers(&self) -> String {
        self.name("completion_signals:movers")
    }

    /// List: the answer to a plain worker that asked for the task of a delivery.
    pub fn plain_task(&self, run: RunId, node: &str, entry: &str) -> String {
        self.name(&format!("task:{run}:{node}:{entry}"))
    }

    /// String: a probe that shows whether Redis accepts writes.
    pub fn probe(&self) -> String {
        self.name("wf.probe")
    }

    /// Hash: the lock of the process that has a duty for all processes, with its fencing number.
    pub fn duty_lock(&self, duty: &str) -> String {
        self.name(&format!("wf.lock:duty:{duty}"))
    }

    /// Channel: the number of queued tasks and their stream, or a message that timers have changed.
    pub fn wake(&self) -> String {
        self.name("wf.wake")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchyard_core::Timestamp;

    #[test]
    fn one_partition_has_the_plain_names() {
        let keys = Keys::new("", 0, 1);
        let run = RunId::new(Timestamp::from_millis(1), 2, 0);
        assert_eq!(keys.run(run), format!("run:{run}"));
        assert_eq!(keys.tasks("http", 1), "wf.tasks.http");
        assert_eq!(keys.queue_of("wf.low.function.wf.high.x"), Some(("function.wf.high.x", 2)));
    }

    #[test]
    fn functions_of_plain_workers_share_a_stream() {
        let keys = Keys::new("", 0, 1).with_plain_functions(&["greet".to_owned(), "mail.*".to_owned()]);
        let stream = |queue: &str| keys.tasks(queue, 1);
        assert_eq!(stream("function:greet"), "wf.tasks.function");
        assert_eq!(stream("function:mail.send"), "wf.tasks.function");
        assert_eq!(stream("function:greet@2"), "wf.tasks.function:greet@2");
        assert_eq!(stream("function.greet"), "wf.tasks.function.greet", "a queue is not a function");
    }

    #[test]
    fn many_partitions_carry_a_hash_tag() {
        let keys = Keys::new("app:", 3, 8);
        assert_eq!(keys.outbox(), "app:{p3}:wf.outbox");
        assert_eq!(keys.queue_of("app:{p3}:wf.high.http"), Some(("http", 0)));
        assert_eq!(keys.queue_of("wf.high.http"), None);
    }
}
