//! Graphs by the hash of their definition: in Redis for every process, and here as the scripts need them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use switchyard_core::Hash;
use switchyard_core::ir::{EdgeOn, Ir, Join, NodeIx, Role};
use switchyard_core::yard::band;
use switchyard_store::StoreError;

use crate::client::Client;
use crate::keys::Keys;
use crate::record::json;
use crate::scripts;

/// Graphs kept here. Beyond this half of them go, and are read again when needed.
const KEPT_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) ir: Arc<Ir>,
    /// By [`NodeIx`].
    pub(crate) places: Vec<Place>,
    /// The node whose output is that of the run.
    pub(crate) result: Arc<str>,
}

/// What a script is told about a node.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) stream: String,
    pub(crate) reads: String,
    pub(crate) needs: String,
}

#[derive(Debug)]
pub(crate) struct Graphs {
    known: Mutex<HashMap<Hash, Arc<Graph>>>,
    client: Client,
    keys: Keys,
}

impl Graphs {
    pub(crate) fn new(client: Client, keys: Keys) -> Self {
        Self { known: Mutex::new(HashMap::new()), client, keys }
    }

    /// Makes a graph known, to every process. `time` is what scripts are told.
    pub(crate) async fn learn(&self, ir: Arc<Ir>, time: String) -> Result<(), StoreError> {
        if !self.known.lock().contains_key(&ir.hash) {
            self.keep(Graph::new(ir.clone(), &self.keys)?);
        }
        self.publish(&ir, time).await
    }

    /// Graphs lie in Redis as long as a run is on them, the names of the streams that they use for good.
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
        Ok(Some(self.keep(Graph::new(Arc::new(ir), &self.keys)?)))
    }

    pub(crate) async fn get(&self, definition: Hash) -> Result<Arc<Graph>, StoreError> {
        let found = self.find(definition).await?;
        found.ok_or_else(|| StoreError::unavailable(format!("graph {definition} is not in Redis")))
    }
}

impl Graph {
    fn new(ir: Arc<Ir>, keys: &Keys) -> Result<Self, StoreError> {
        // Scripts take lists of ids apart at blanks.
        if let Some(node) = ir.nodes.iter().find(|node| node.id.contains(char::is_whitespace)) {
            return Err(StoreError::Corrupt(format!("the id of node `{}` has a blank in it", node.id)));
        }
        let places = ir.indices().map(|ix| Place::new(&ir, ix, keys)).collect::<Result<_, _>>()?;
        let result = ir.output.or(match ir.sinks[..] {
            [only] => Some(only),
            _ => None,
        });
        let result = result.map_or_else(|| "".into(), |ix| ir.node(ix).id.clone());
        Ok(Self { ir, places, result })
    }

    pub(crate) fn place(&self, ix: NodeIx) -> &Place {
        &self.places[ix.index()]
    }

    /// What follows from the end of a node, as `includes/settle.lua` reads it.
    pub(crate) fn push_edges(&self, ix: NodeIx, succeeded: bool, args: &mut Vec<String>) {
        let node = self.ir.node(ix);
        let steps = node.role == Role::Step;
        let edges: &[_] = if steps { &node.dependents } else { &[] };
        args.push(edges.len().to_string());
        for edge in edges {
            let (to, place) = (self.ir.node(edge.to), self.place(edge.to));
            let flag = |set: bool| if set { "1".to_owned() } else { "0".to_owned() };
            args.extend([
                to.id.to_string(),
                flag(succeeded && edge.on == EdgeOn::Success),
                flag(to.join == Join::Any),
                place.needs.clone(),
                place.stream.clone(),
                place.reads.clone(),
            ]);
        }
    }
}

impl Place {
    fn new(ir: &Ir, ix: NodeIx, keys: &Keys) -> Result<Self, StoreError> {
        let node = ir.node(ix);
        let reads: Vec<&str> = node.reads.iter().map(|read| &*ir.node(*read).id).collect();
        Ok(Self {
            name: json(&node.id)?,
            stream: keys.tasks(&node.queue, band(node.priority)),
            reads: reads.join(" "),
            needs: node.needs.to_string(),
        })
    }
}
