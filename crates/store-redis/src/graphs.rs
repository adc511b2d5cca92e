//! Graphs by the hash of their definition: Redis has them for every process; each process caches them together with the
//! arguments that scripts need.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::Cmd;
use switchyard_core::in_flight::{PRIORITIES, band};
use switchyard_core::ir::{EdgeOn, Ir, Join, NodeIx, Role};
use switchyard_core::{Hash, RunId};
use switchyard_store::StoreError;

use crate::client::Client;
use crate::keys::Keys;
use crate::record::json;
use crate::scripts;
use crate::timers::in_ms;

/// For how many runs a process remembers the graph.
const RUNS_MAX: usize = 200_000;

/// The longest list of reads that is sent with each settlement that may release a node. The core releases nodes with
/// longer lists.
const READS_BYTES_MAX: usize = 2_000;
/// Replaces a longer list. Ids do not contain this character.
const READS_LEFT_OUT: &str = "?";

/// How many graphs a process caches. At this number it drops half of them, and reads them again when needed.
const KEPT_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) ir: Arc<Ir>,
    /// Indexed by [`NodeIx`].
    pub(crate) hints: Vec<NodeHints>,
    /// The node whose output is the output of the run.
    pub(crate) result: Arc<str>,
    /// The hash of the definition in hex, as runs store it.
    pub(crate) hash: String,
}

/// The kind of a settlement on the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Succeeded,
    Skipped,
    HandedBack,
}

/// The graph and priority of a run that this process has claimed. A patch changes the definition; the priority never
/// changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GraphOfRun {
    pub(crate) definition: Hash,
    /// The priority that the run was submitted with.
    pub(crate) priority: Option<u8>,
}

/// The arguments that scripts need about a node.
#[derive(Debug)]
pub(crate) struct NodeHints {
    pub(crate) name: String,
    /// The stream for each band of the run's priority; all the same for a node with its own priority.
    streams: [String; PRIORITIES.len()],
    /// The band of the node in a run without a priority.
    band: usize,
    pub(crate) reads: String,
    pub(crate) needs: String,
    /// How long an attempt may take, in ms; empty for no limit.
    pub(crate) limit: String,
}

#[derive(Debug)]
pub(crate) struct Graphs {
    known: Mutex<HashMap<Hash, Arc<Graph>>>,
    /// The graphs of runs that this process has claimed.
    of_runs: Mutex<HashMap<RunId, GraphOfRun>>,
    client: Client,
    keys: Keys,
    /// How long an attempt may take if the graph sets no limit.
    attempt_default: Duration,
}

impl Graphs {
    pub(crate) fn new(client: Client, keys: Keys, attempt_default: Duration) -> Self {
        Self { known: Mutex::default(), of_runs: Mutex::default(), client, keys, attempt_default }
    }

    /// The graph that a run was on when this process last claimed one of its nodes.
    pub(crate) fn of_run(&self, run: RunId) -> Option<GraphOfRun> {
        self.of_runs.lock().get(&run).copied()
    }

    pub(crate) fn remember(&self, run: RunId, on: GraphOfRun) {
        let mut of_runs = self.of_runs.lock();
        if of_runs.len() >= RUNS_MAX {
            of_runs.clear();
        }
        of_runs.insert(run, on);
    }

    /// Caches a graph and publishes it to every process. `time` is the time argument of scripts.
    pub(crate) async fn learn(&self, ir: Arc<Ir>, time: String) -> Result<(), StoreError> {
        if !self.known.lock().contains_key(&ir.hash) {
            self.keep(Graph::new(ir.clone(), &self.keys, self.attempt_default)?);
        }
        self.publish(&ir, time).await
    }

    /// Writes a graph to Redis. The graph is removed when no run uses it; the names of its streams stay.
    pub(crate) async fn publish(&self, ir: &Ir, time: String) -> Result<(), StoreError> {
        let keys = [self.keys.ir(ir.hash), self.keys.graphs(), self.keys.streams()];
        let stream = |node: &switchyard_core::ir::Node| self.keys.tasks(&node.queue, band(node.priority));
        let streams: BTreeSet<String> = ir.nodes.iter().map(stream).collect();
        let args: Vec<String> = [time, ir.hash.hex(), json(ir)?].into_iter().chain(streams).collect();
        self.client.run(&scripts::PUBLISH, &keys, &args).await
    }

    fn keep(&self, graph: Graph) -> Arc<Graph> {
        let graph = Arc::new(graph);
        let mut known = self.known.lock();
        if known.len() >= KEPT_MAX {
            let mut kept = 0;
            known.retain(|_, _| {
                kept += 1;
                kept % 2 == 0
            });
        }
        known.insert(graph.ir.hash, graph.clone());
        graph
    }

    pub(crate) fn cached(&self, definition: Hash) -> Option<Arc<Graph>> {
        self.known.lock().get(&definition).cloned()
    }

    pub(crate) async fn find(&self, definition: Hash) -> Result<Option<Arc<Graph>>, StoreError> {
        if let Some(graph) = self.cached(definition) {
            return Ok(Some(graph));
        }
        let text: Option<String> = self.client.query(redis::cmd("GET").arg(self.keys.ir(definition))).await?;
        let Some(text) = text else { return Ok(None) };
        let ir = Ir::from_json(&text)
            .map_err(|error| StoreError::Corrupt(format!("graph {definition} in Redis: {error}")))?;
        Ok(Some(self.keep(Graph::new(Arc::new(ir), &self.keys, self.attempt_default)?)))
    }

    pub(crate) async fn get(&self, definition: Hash) -> Result<Arc<Graph>, StoreError> {
        let found = self.find(definition).await?;
        found.ok_or_else(|| StoreError::unavailable(format!("graph {definition} is not in Redis")))
    }
}

impl Graph {
    fn new(ir: Arc<Ir>, keys: &Keys, attempt_default: Duration) -> Result<Self, StoreError> {
        // Scripts split lists of ids at blanks.
        if let Some(node) = ir.nodes.iter().find(|node| node.id.contains(char::is_whitespace)) {
            return Err(StoreError::Corrupt(format!("the id of node `{}` has a blank in it", node.id)));
        }
        let hints = |ix| NodeHints::new(&ir, ix, keys, attempt_default);
        let hints = ir.indices().map(hints).collect::<Result<_, _>>()?;
        let result = ir.output.or(match ir.sinks[..] {
            [only] => Some(only),
            _ => None,
        });
        let result = result.map_or_else(|| "".into(), |ix| ir.node(ix).id.clone());
        Ok(Self { hash: ir.hash.hex(), ir, hints, result })
    }

    pub(crate) fn hints_of(&self, ix: NodeIx) -> &NodeHints {
        &self.hints[ix.index()]
    }

    /// Writes the hints for the settlement of a node, in the order in which `includes/settle.lua` reads them.
    pub(crate) fn write_hints(&self, ix: NodeIx, ending: Ending, priority: Option<u8>, call: &mut Cmd) {
        let (node, hints) = (self.ir.node(ix), self.hints_of(ix));
        // The node's own reads are needed only if it is queued again.
        let reads = if ending == Ending::HandedBack { &*hints.reads } else { "" };
        call.arg(&*node.id).arg(&hints.name).arg(&self.hash).arg(hints.stream(priority)).arg(reads);
        call.arg(&hints.needs).arg(&hints.limit).arg(&*self.result);
        match self.ir.output.filter(|_| node.role == Role::Step) {
            Some(last) => {
                let hints = self.hints_of(last);
                call.arg(&*self.ir.node(last).id).arg(hints.stream(priority)).arg(hints.short_reads());
                call.arg(&hints.needs).arg(&hints.limit);
            }
            None => drop(call.arg("").arg("").arg("").arg("").arg("")),
        }
        let leads_on = node.role == Role::Step && ending != Ending::HandedBack;
        let edges: &[_] = if leads_on { &node.dependents } else { &[] };
        call.arg(edges.len());
        let flag = |set: bool| if set { "1" } else { "0" };
        for edge in edges {
            let (to, hints) = (self.ir.node(edge.to), self.hints_of(edge.to));
            let fires = ending == Ending::Succeeded && edge.on == EdgeOn::Success;
            call.arg(&*to.id).arg(flag(fires)).arg(flag(to.join == Join::Any));
            call.arg(&hints.needs).arg(hints.stream(priority)).arg(hints.short_reads()).arg(&hints.limit);
        }
    }
}

impl NodeHints {
    /// The stream of the node's tasks in a run that was submitted with this priority.
    pub(crate) fn stream(&self, of_run: Option<u8>) -> &str {
        &self.streams[of_run.map_or(self.band, band)]
    }

    fn short_reads(&self) -> &str {
        if self.reads.len() > READS_BYTES_MAX { READS_LEFT_OUT } else { &self.reads }
    }

    fn new(ir: &Ir, ix: NodeIx, keys: &Keys, attempt_default: Duration) -> Result<Self, StoreError> {
        let node = ir.node(ix);
        let reads: Vec<&str> = node.reads.iter().map(|read| &*ir.node(*read).id).collect();
        let own = band(node.priority);
        let in_band = |of_run| keys.tasks(&node.queue, if node.inherits_priority { of_run } else { own });
        Ok(Self {
            name: json(&node.id)?,
            streams: std::array::from_fn(in_band),
            band: own,
            reads: reads.join(" "),
            needs: node.needs.to_string(),
            limit: in_ms(node.limit.or_default(attempt_default)),
        })
    }
}
