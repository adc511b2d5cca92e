//! Every name in Redis. `docs/reference/keys.md` says what lies under each.

use std::sync::Arc;

use switchyard_core::in_flight::takes;
use switchyard_core::ir::queue_name;
use switchyard_core::{ApprovalId, Hash, RunId};

/// The group that every worker reads tasks in.
pub(crate) const GROUP: &str = "workers";

/// The beginnings of the streams of the high, normal and low band. Not suffixes: the name of a queue may end in anything.
pub(crate) const BANDS: [&str; 3] = ["wf.high.", "wf.tasks.", "wf.low."];

/// The names of one partition. Scripts build the names of runs that they find in streams themselves, from the
/// same beginning: `scripts/includes/keys.lua`.
#[derive(Clone, Debug)]
pub struct Keys {
    begin: Arc<str>,
    /// The queues of functions that plain workers serve, or patterns: their tasks share a stream.
    plain: Arc<[Arc<str>]>,
}

impl Keys {
    /// With one partition the names are the plain ones; with more, each carries a hash tag, so that everything
    /// that a script touches shares a slot of a cluster.
    pub fn new(prefix: &str, partition: u16, partitions: u16) -> Self {
        let tag = if partitions > 1 { format!("{{p{partition}}}:") } else { String::new() };
        Self { begin: format!("{prefix}{tag}").into(), plain: Arc::default() }
    }

    /// The same names, where tasks of these functions lie in the stream that plain workers read. A name may end in `*`.
    pub fn with_plain_functions(self, functions: &[String]) -> Self {
        Self { plain: functions.iter().map(|name| queue_name::of_function(name)).collect(), ..self }
    }

    /// The queues of functions that plain workers serve, or patterns.
    pub(crate) fn plain_queues(&self) -> &[Arc<str>] {
        &self.plain
    }

    /// Whether tasks of this queue lie in the stream that plain workers read.
    pub(crate) fn is_plain(&self, queue: &str) -> bool {
        takes(&self.plain, queue)
    }

    /// The beginning of every name.
    pub(crate) fn begin(&self) -> &str {
        &self.begin
    }

    fn name(&self, rest: &str) -> String {
        format!("{}{rest}", self.begin)
    }

    /// Hash: where a run stands. Also the channel on which its news is published.
    pub fn run(&self, run: RunId) -> String {
        self.name(&format!("run:{run}"))
    }

    /// Hash: its nodes, by id.
    pub fn dag(&self, run: RunId) -> String {
        self.name(&format!("dag:{run}"))
    }

    /// Hash: its input, and what its nodes came to.
    pub fn context(&self, run: RunId) -> String {
        self.name(&format!("context:{run}"))
    }

    /// Hash: the commands that took effect on a run, by operation id, each with the hash of what was asked for.
    pub fn operations(&self, run: RunId) -> String {
        self.name(&format!("operations:{run}"))
    }

    /// Hash: the runs that a node starts, `spec:<index>` and `end:<index>` of each.
    pub fn children(&self, run: RunId, node: &str) -> String {
        self.name(&format!("children:{run}:{node}"))
    }

    /// A large key under its temporary name, until the next commit renames it.
    pub(crate) fn staged(&self, key: &str, number: u64) -> String {
        format!("{key}:staged:{number:016x}")
    }

    /// Sorted set by when they were put there: lists of tokens that are to be queued.
    pub fn ready(&self) -> String {
        self.name("wf.ready")
    }

    /// List: tokens of a run that became ready together, by its member in [`Self::ready`].
    pub fn ready_list(&self, member: &str) -> String {
        self.name(&format!("ready:{}", member.replace(' ', ":")))
    }

    /// Set: children that are to be cancelled, `<run> <whether to compensate>`.
    pub fn cancels(&self) -> String {
        self.name("wf.cancels")
    }

    /// String: the text of a definition, for workers that execute its steps while the archive is away.
    pub fn definition(&self, definition: Hash) -> String {
        self.name(&format!("definition:{}", definition.hex()))
    }

    /// String: a graph, shared by all runs on it.
    pub fn ir(&self, definition: Hash) -> String {
        self.ir_of(&definition.hex())
    }

    /// The same, by the hex digits of its hash, as scripts have it.
    pub(crate) fn ir_of(&self, hash: &str) -> String {
        self.name(&format!("ir:{hash}"))
    }

    /// Sorted set: hashes of graphs by the moment when a run was last put on them.
    pub fn graphs(&self) -> String {
        self.name("wf.graphs")
    }

    /// Set: every run that is here.
    pub fn runs(&self) -> String {
        self.name("wf.runs")
    }

    /// Stream: tasks of a type, or of a function, in a band.
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

    /// Stream: events on their way to the archive, an entry for each change.
    pub fn outbox(&self) -> String {
        self.name("wf.outbox")
    }

    /// Hash: which archive this Redis belongs to, how far that had come when it was last looked at, and why the outbox
    /// could not be shipped.
    pub fn archive(&self) -> String {
        self.name("wf.archive")
    }

    /// Sorted set by due time: `<run> <claim> <node>`, or `<run> deadline`.
    pub fn timers(&self) -> String {
        self.name("wf.timers")
    }

    /// Sorted set by the end of the lease: `<run> <claim> <node>`.
    pub fn leases(&self) -> String {
        self.name("wf.leases")
    }

    /// Hash: `<run> <incarnation>` → 1, of runs whose events in the outbox contradict the archive.
    pub fn forgotten(&self) -> String {
        self.name("wf.forgotten")
    }

    /// Hash: a concurrency key.
    pub fn concurrency_key(&self, key: &str) -> String {
        self.name(&format!("gate:{key}"))
    }

    /// Sorted set: who is under way with it (score 0), and who waits (score: arrival). Another beginning, because a
    /// key may have any end.
    pub fn concurrency_line(&self, key: &str) -> String {
        self.name(&format!("gate.line:{key}"))
    }

    /// String: the run that an idempotency key stands for, and the hash of its body.
    pub fn idempotency(&self, key: &str) -> String {
        self.name(&format!("idempotency:{key}"))
    }

    /// Hash: a pending decision of a person.
    pub fn approval(&self, approval: &ApprovalId) -> String {
        self.name(&format!("approval:{approval}"))
    }

    /// Hash: who ships the outbox, until when, and the fencing number.
    pub fn ship_lock(&self) -> String {
        self.name("wf.lock:outbox")
    }

    /// Set: every stream of tasks that a graph here has nodes for.
    pub fn streams(&self) -> String {
        self.name("wf.streams")
    }

    /// Sorted set by until when they count as alive: names of workers.
    pub fn workers(&self) -> String {
        self.name("wf.workers")
    }

    /// Hash: what a worker last said about itself.
    pub fn worker(&self, name: &str) -> String {
        self.name(&format!("worker:{name}"))
    }

    /// Hash: who looks after the members of the group, and the fencing number.
    pub fn cleanup_lock(&self) -> String {
        self.name("wf.lock:consumers")
    }

    /// Hash: who looks for entries that are pending for long, and the fencing number.
    pub fn watch_lock(&self) -> String {
        self.name("wf.lock:streams")
    }

    /// List: what plain workers say became of their tasks.
    pub fn signals(&self) -> String {
        self.name("completion_signals")
    }

    /// List: signals that a process is turning into settlements.
    pub fn processing(&self, mover: &str) -> String {
        self.name(&format!("completion_signals:processing:{mover}"))
    }

    /// Hash: process → when it last took signals.
    pub fn movers(&self) -> String {
        self.name("completion_signals:movers")
    }

    /// List: the task that a plain worker has asked for, for one delivery of its node.
    pub fn plain_task(&self, run: RunId, node: &str, entry: &str) -> String {
        self.name(&format!("task:{run}:{node}:{entry}"))
    }

    /// String: written to see whether writes are taken.
    pub fn probe(&self) -> String {
        self.name("wf.probe")
    }

    /// Hash: who has a duty that one process has for all, and the fencing number.
    pub fn duty_lock(&self, duty: &str) -> String {
        self.name(&format!("wf.lock:duty:{duty}"))
    }

    /// Channel: a stream's name and a number for tasks that were queued, or `timers`.
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
