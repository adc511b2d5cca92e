//! In-flight state, its history, and random commands to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use switchyard_core::in_flight::*;
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::{DrawnOnError, Sketch};
use switchyard_core::run::*;
use switchyard_core::{ApprovalId, Hash, OperationId, PatchId, Payload, RunId, Timestamp};

use crate::checks;
use crate::graphs::QUEUES;
use crate::outcomes::{How, how};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Accept { graph: u8, key: Option<u8>, delay: Option<u8>, priority: Option<u8> },
    Claim { max: u8 },
    Settle { which: u8, how: How },
    SettleAgain { which: u8, how: How },
    Heartbeat { which: u8 },
    Progress { which: u8, stale: bool, checkpoint: bool },
    Pass { seconds: u16 },
    Cancel { run: u8, compensate: bool, now: bool },
    Pause { run: u8 },
    Resume { run: u8 },
    Signal { run: u8 },
    Decide { approve: bool },
    Patch { run: u8, what: u8 },
    Retry { run: u8 },
    Repeat { which: u8, changed: bool },
    Restart,
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (
            any::<u8>(),
            prop::option::of(0u8..3),
            prop::option::weighted(0.3, 0u8..60),
            prop::option::weighted(0.3, 1u8..=10),
        ).prop_map(|(graph, key, delay, priority)| Op::Accept { graph, key, delay, priority }),
        8 => (1u8..4).prop_map(|max| Op::Claim { max }),
        10 => (any::<u8>(), how()).prop_map(|(which, how)| Op::Settle { which, how }),
        2 => (any::<u8>(), how()).prop_map(|(which, how)| Op::SettleAgain { which, how }),
        1 => any::<u8>().prop_map(|which| Op::Heartbeat { which }),
        2 => any::<(u8, bool, bool)>()
            .prop_map(|(which, stale, checkpoint)| Op::Progress { which, stale, checkpoint }),
        3 => (0u16..40).prop_map(|seconds| Op::Pass { seconds }),
        1 => any::<(u8, bool, bool)>()
            .prop_map(|(run, compensate, now)| Op::Cancel { run, compensate, now }),
        1 => any::<u8>().prop_map(|run| Op::Pause { run }),
        1 => any::<u8>().prop_map(|run| Op::Resume { run }),
        1 => any::<u8>().prop_map(|run| Op::Signal { run }),
        1 => any::<bool>().prop_map(|approve| Op::Decide { approve }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(run, what)| Op::Patch { run, what }),
        1 => any::<u8>().prop_map(|run| Op::Retry { run }),
        2 => any::<(u8, bool)>().prop_map(|(which, changed)| Op::Repeat { which, changed }),
        1 => Just(Op::Restart),
    ]
}

pub(crate) struct World {
    pub(crate) in_flight: InFlight,
    pub(crate) histories: HashMap<RunId, Vec<Event>>,
    pub(crate) irs: HashMap<Hash, Arc<Ir>>,
    /// Runs in the order in which they were accepted.
    pub(crate) order: Vec<RunId>,
    graphs: Vec<Sketch>,
    /// The current sketch of each run, to patch it.
    drawn: HashMap<RunId, Sketch>,
    held: Vec<ClaimRef>,
    settled: Vec<ClaimRef>,
    approvals: Vec<ApprovalId>,
    /// Commands that took effect.
    pub(crate) applied: Vec<(RunId, Operation, Command)>,
    pub(crate) now: Timestamp,
    counter: u64,
}

const LEASE: Duration = Duration::from_secs(30);

impl World {
    pub(crate) fn new(graphs: Vec<Sketch>) -> Self {
        let mut world = Self {
            in_flight: InFlight::new(Limits::default()),
            histories: HashMap::new(),
            irs: HashMap::new(),
            order: Vec::new(),
            drawn: HashMap::new(),
            held: Vec::new(),
            settled: Vec::new(),
            approvals: Vec::new(),
            applied: Vec::new(),
            now: Timestamp::from_millis(1_000),
            counter: 0,
            graphs: Vec::new(),
        };
        for graph in &graphs {
            world.learn(graph.ir());
        }
        world.learn(Sketch::chain(2).ir());
        world.graphs = graphs;
        world
    }

    fn learn(&mut self, ir: Arc<Ir>) {
        self.irs.insert(ir.hash, ir.clone());
        self.in_flight.learn(ir);
    }

    fn fresh(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn fresh_run(&mut self) -> RunId {
        let random = self.fresh();
        RunId::new(self.now, random, 0)
    }

    fn pick(&self, which: u8) -> Option<RunId> {
        (!self.order.is_empty()).then(|| self.order[usize::from(which) % self.order.len()])
    }

    /// Performs one operation, then checks the invariants.
    pub(crate) fn act(&mut self, op: &Op) {
        let mut out = Vec::new();
        self.perform(op, &mut out);
        let mut touched: Vec<RunId> = out.iter().map(|event| event.run).collect();
        touched.dedup();
        self.note(out);
        checks::touched(self, &touched);
    }

    fn note(&mut self, events: Vec<Event>) {
        for event in events {
            checks::before_event(self, &event);
            if event.seq == 1 {
                self.order.push(event.run);
            }
            if let EventKind::NodeWaiting { on: WaitFor::Approval(request), .. } = &event.kind {
                self.approvals.push(request.approval.clone());
            }
            self.histories.entry(event.run).or_default().push(event);
        }
    }

    fn perform(&mut self, op: &Op, out: &mut Vec<Event>) {
        let now = self.now;
        match *op {
            Op::Accept { graph, key, delay, priority } => self.accept(graph, key, delay, priority, out),
            Op::Claim { max } => {
                let tasks = self.in_flight.claim(&want(usize::from(max)), now, out);
                self.held.extend(tasks.iter().map(claim_of));
            }
            Op::Settle { which, how } => self.settle(which, how, out),
            Op::SettleAgain { which, how } => self.settle_again(which, how, out),
            Op::Heartbeat { which } => {
                if let Some(claim) = self.held.get(usize::from(which) % self.held.len().max(1)) {
                    self.in_flight.heartbeat(claim, Some(LEASE), now);
                }
            }
            Op::Progress { which, stale, checkpoint } => self.progress(which, stale, checkpoint, out),
            Op::Pass { seconds } => {
                self.now = now.plus(Duration::from_secs(u64::from(seconds)));
                self.in_flight.fire_due(self.now, out);
                self.in_flight.reclaim(self.now, out);
            }
            Op::Cancel { run, compensate, now } => {
                let cancel = Command::Cancel { by: "me".into(), reason: "".into(), compensate, now };
                self.command(run, cancel, out);
            }
            Op::Pause { run } => self.command(run, Command::Pause { by: "me".into() }, out),
            Op::Resume { run } => self.command(run, Command::Resume { by: "me".into() }, out),
            Op::Signal { run } => {
                self.command(run, Command::Signal { name: "go".into(), payload: Payload::null() }, out);
            }
            Op::Decide { approve } => self.decide(approve, out),
            Op::Patch { run, what } => self.patch(run, what, out),
            Op::Retry { run } => self.retry(run, out),
            Op::Repeat { which, changed } => self.repeat(which, changed, out),
            Op::Restart => self.restart(out),
        }
    }

    fn accept(
        &mut self,
        graph: u8,
        key: Option<u8>,
        delay: Option<u8>,
        priority: Option<u8>,
        out: &mut Vec<Event>,
    ) {
        let sketch = self.graphs[usize::from(graph) % self.graphs.len()].clone();
        let (id, ir) = (self.fresh_run(), sketch.ir());
        let mut accepted = Accepted::plain("sketch".into(), ir.hash, Payload::null());
        accepted.concurrency =
            key.map(|key| Concurrency { key: format!("key{}", key % 2).into(), limit: 1 + u32::from(key) });
        accepted.start_at = delay.map(|delay| self.now.plus(Duration::from_secs(delay.into())));
        accepted.priority = priority;
        self.drawn.insert(id, sketch);
        self.in_flight.accept(NewRun { id, accepted }, self.now, out).expect("a fresh run is accepted");
    }

    fn settle(&mut self, which: u8, how: How, out: &mut Vec<Event>) {
        if self.held.is_empty() {
            return;
        }
        let place = usize::from(which) % self.held.len();
        let claim = self.held.swap_remove(place);
        let outcome = how.outcome(self.now, &mut self.counter);
        self.in_flight.settle(Settlement { claim: claim.clone(), outcome }, self.now, out);
        self.settled.push(claim);
    }

    /// I2: a second settlement of a claim that was settled or taken back changes nothing.
    fn settle_again(&mut self, which: u8, how: How, out: &mut Vec<Event>) {
        if self.settled.is_empty() {
            return;
        }
        let claim = self.settled[usize::from(which) % self.settled.len()].clone();
        let outcome = how.outcome(self.now, &mut self.counter);
        let answer = self.in_flight.settle(Settlement { claim, outcome }, self.now, out);
        assert_ne!(answer, Settled::Applied, "a second settlement was applied");
        assert!(out.is_empty(), "a second settlement changed something: {out:?}");
    }

    /// Reports progress. A claim that was settled or taken back cannot record any.
    fn progress(&mut self, which: u8, stale: bool, checkpoint: bool, out: &mut Vec<Event>) {
        let claims = if stale { &self.settled } else { &self.held };
        let Some(claim) = claims.get(usize::from(which) % claims.len().max(1)) else { return };
        let value = Payload::from_value(&which.into());
        let progress = match which % 3 {
            0 => Progress::Logs(LogBatch { lines: value, count: 2, bytes: 20 }),
            _ if checkpoint => Progress::Checkpoint(value),
            _ => Progress::Chunks(vec![value; 3]),
        };
        let answer = self.in_flight.progress(claim, progress, self.now, out).expect("within the bounds");
        assert_eq!(answer == Settled::Applied, !out.is_empty());
        assert!(!stale || out.is_empty(), "a settled claim said something: {out:?}");
    }

    fn command(&mut self, run: u8, command: Command, out: &mut Vec<Event>) {
        let Some(run) = self.pick(run) else { return };
        if let Some(Err(_)) = self.give(run, command, out) {
            assert!(out.is_empty(), "a refused command changed something: {out:?}");
        }
    }

    /// Gives a command with a new operation id.
    fn give(
        &mut self,
        run: RunId,
        command: Command,
        out: &mut Vec<Event>,
    ) -> Option<Result<Applied, Refusal>> {
        let asked = Hash::of(format!("{command:?}").as_bytes());
        let operation = Operation { id: OperationId::drawn(self.fresh().into()), command: asked };
        let answer = self.in_flight.command(run, &operation, command.clone(), self.now, out);
        if matches!(answer, Some(Ok(_))) {
            self.applied.push((run, operation, command));
        }
        answer
    }

    /// Repeats an operation that took effect: it changes nothing, even after its run has ended. The same id with
    /// another command is refused.
    fn repeat(&mut self, which: u8, changed: bool, out: &mut Vec<Event>) {
        if self.applied.is_empty() {
            return;
        }
        let (run, mut operation, command) = self.applied[usize::from(which) % self.applied.len()].clone();
        if changed {
            operation.command = Hash::of(b"something else");
        }
        let ended = self.in_flight.run(run).is_none();
        if ended && matches!(command, Command::Retry { .. }) {
            self.in_flight.restore(vec![self.replay(run)], self.now, out);
        }
        let answer = self.in_flight.command(run, &operation, command.clone(), self.now, out);
        assert!(out.is_empty(), "a repeated command changed something: {out:?}");
        let known = match changed {
            true => Err(Refusal::OperationReused(operation.id)),
            false => Ok(Applied::Earlier),
        };
        let expected = (!ended || matches!(command, Command::Retry { .. })).then_some(known);
        assert_eq!(answer, expected);
        assert_eq!(self.in_flight.run(run).is_none(), ended, "a run that was looked at stays where it was");
    }

    fn decide(&mut self, approve: bool, out: &mut Vec<Event>) {
        let Some(approval) = self.approvals.pop() else { return };
        let Some(run) = self.in_flight.run_of_approval(&approval) else { return };
        let decision = if approve { Decision::Approved } else { Decision::Rejected };
        let command = Command::Decide { approval, decision, by: "me".into(), comment: "".into() };
        self.give(run, command, out).expect("it is here").expect("it is pending");
    }

    /// Changes the sketch at random. I8: the patch is accepted only if it changes no started node.
    fn patch(&mut self, run: u8, what: u8, out: &mut Vec<Event>) {
        let Some(id) = self.pick(run) else { return };
        let (Some(sketch), Some(state)) = (self.drawn.get(&id), self.in_flight.run(id).cloned()) else {
            return;
        };
        let mut sketch = sketch.clone();
        let target = usize::from(what / 4) % sketch.nodes.len();
        match what % 4 {
            0 => {
                let (fresh, need) = (format!("p{}", self.counter + 1), sketch.nodes[target].id.clone());
                sketch = sketch.node(&fresh, &[&need]);
                self.fresh();
            }
            // The language refuses to remove a node that a `goto` names.
            1 if target == sketch.nodes.len() - 1 && target > 0 && !is_goto_target(&sketch, target) => {
                let gone = sketch.nodes.remove(target).id;
                for node in &mut sketch.nodes {
                    node.needs.retain(|need| *need != gone);
                }
            }
            2 => sketch.nodes[target].max_attempts += 1,
            _ => drop(sketch.nodes[target].needs.pop()),
        }
        let ir = sketch.ir();
        self.learn(ir.clone());
        let patched = Patched {
            patch: PatchId::new(format!("patch_{}", self.fresh())),
            version: 0,
            definition: ir.hash,
            author: "me".into(),
            reason: "".into(),
            ops: Payload::null(),
            diff: Vec::new(),
            undoes: None,
            operation: None,
        };
        let touches_started = state.ir.indices().any(|ix| {
            let old = state.ir.node(ix);
            let kept = ir.find(&old.id).is_some_and(|new| {
                (ir.node(new).fingerprint, ir.node(new).needs) == (old.fingerprint, old.needs)
            });
            state.node(ix).has_started() && !kept
        });
        let command = Command::Patch { seen: state.version, patched: Box::new(patched) };
        match self.give(id, command, out).expect("it is here") {
            Ok(_) => {
                assert!(!touches_started, "a patch touched a node that had started");
                self.drawn.insert(id, sketch);
            }
            Err(_) => assert!(out.is_empty(), "a refused patch changed something"),
        }
    }

    fn retry(&mut self, run: u8, out: &mut Vec<Event>) {
        let Some(id) = self.pick(run) else { return };
        if self.in_flight.run(id).is_some() {
            return;
        }
        let ended = self.replay(id);
        // A child is retried with its parent, not alone.
        if ended.accepted.parent.is_none() {
            self.in_flight.restore(vec![ended], self.now, out);
            let _ = self.give(id, Command::Retry { by: "me".into() }, out);
        }
    }

    pub(crate) fn replay(&self, id: RunId) -> Run {
        Run::replay(&self.histories[&id], &|hash| self.irs.get(&hash).cloned()).expect("the history is whole")
    }

    /// Restarts the process: only the journal survives.
    fn restart(&mut self, out: &mut Vec<Event>) {
        self.in_flight = InFlight::new(Limits { deliveries_max: 1_000, ..Limits::default() });
        for ir in self.irs.values() {
            self.in_flight.learn(ir.clone());
        }
        let runs = self.order.iter().map(|id| self.replay(*id)).filter(|run| !run.is_ended()).collect();
        self.in_flight.restore(runs, self.now, out);
        self.settled.append(&mut self.held);
    }

    /// I1: every run ends once the test gives the commands it waits for.
    pub(crate) fn drain(&mut self) {
        for _ in 0..2_000 {
            if self.in_flight.is_empty() {
                return;
            }
            self.help(|run| run.paused, &Command::Resume { by: "me".into() });
            self.act(&Op::Pass { seconds: 60 });
            self.settled.append(&mut self.held);
            self.act(&Op::Claim { max: 200 });
            while !self.held.is_empty() {
                self.act(&Op::Settle { which: 0, how: How::Succeed(0) });
            }
            while !self.approvals.is_empty() {
                self.act(&Op::Decide { approve: true });
            }
            let signal = Command::Signal { name: "go".into(), payload: Payload::null() };
            self.help(|run| run.signals.is_empty(), &signal);
        }
        let stuck: Vec<_> = self.in_flight.runs().collect();
        panic!("runs that do not end: {stuck:#?}");
    }
}

impl World {
    /// Gives a command to every run that needs it.
    fn help(&mut self, needs: impl Fn(&Run) -> bool, command: &Command) {
        let ids: Vec<RunId> = self.in_flight.runs().filter(|run| needs(run)).map(|run| run.id).collect();
        for id in ids {
            let mut out = Vec::new();
            let _ = self.give(id, command.clone(), &mut out);
            self.note(out);
            checks::touched(self, &[id]);
        }
    }
}

fn is_goto_target(sketch: &Sketch, target: usize) -> bool {
    let goto = DrawnOnError::Goto(sketch.nodes[target].id.clone());
    sketch.nodes.iter().any(|node| node.on_error == goto)
}

fn want(max: usize) -> Want {
    Want { worker: "w".into(), queues: QUEUES.map(Into::into).into(), max, lease: Some(LEASE) }
}

fn claim_of(task: &Task) -> ClaimRef {
    ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim }
}
