//! Graphs drawn by hand, for tests and benchmarks that have no use for the language.
//!
//! A sketch is not validated: needs must name nodes that were drawn before, which also keeps the graph acyclic.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{AttemptLimit, Edge, EdgeOn, Ir, Join, Node, NodeIx, OnError, Role};
use crate::Hash;
use crate::retry::{Backoff, RetryPolicy};

/// One node of a [`Sketch`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    pub id: String,
    pub needs: Vec<String>,
    pub any: bool,
    pub on_error: DrawnOnError,
    pub max_attempts: u32,
    pub compensated: bool,
    /// The node's priority. With `None`, the node has the priority of its run, or else 5.
    pub priority: Option<u8>,
    pub queue: String,
    pub limit: AttemptLimit,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum DrawnOnError {
    #[default]
    Fail,
    Continue,
    Goto(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    pub nodes: Vec<Drawn>,
    pub parallelism: Option<u32>,
}

impl Sketch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plain node.
    #[must_use]
    pub fn node(mut self, id: &str, needs: &[&str]) -> Self {
        self.nodes.push(Drawn {
            id: id.to_owned(),
            needs: needs.iter().map(|&need| need.to_owned()).collect(),
            max_attempts: 1,
            queue: "work".to_owned(),
            ..Drawn::default()
        });
        self
    }

    /// Changes the node that was added last.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Drawn)) -> Self {
        if let Some(last) = self.nodes.last_mut() {
            change(last);
        }
        self
    }

    /// A chain of `length` nodes `n0 → n1 → …`.
    pub fn chain(length: usize) -> Self {
        (0..length).fold(Self::new(), |sketch, i| match i {
            0 => sketch.node("n0", &[]),
            _ => sketch.node(&format!("n{i}"), &[&format!("n{}", i - 1)]),
        })
    }

    pub fn ir(&self) -> Arc<Ir> {
        let by_id: HashMap<Arc<str>, NodeIx> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(i, node)| (node.id.as_str().into(), NodeIx(i as u32)))
            .collect();
        let mut ir = Ir {
            hash: Hash::of(format!("{self:?}").as_bytes()),
            name: "sketch".into(),
            nodes: self.nodes.iter().map(|drawn| drawn.node(&by_id)).collect(),
            by_id,
            entries: Vec::new(),
            sinks: Vec::new(),
            output: None,
            parallelism: self.parallelism,
            deadline: None,
            inherit_labels: false,
        };
        self.connect(&mut ir);
        self.add_compensations(&mut ir);
        Arc::new(ir)
    }

    fn connect(&self, ir: &mut Ir) {
        for (i, drawn) in self.nodes.iter().enumerate() {
            let ix = NodeIx(i as u32);
            for need in &drawn.needs {
                let Some(need) = ir.find(need) else { continue };
                ir.nodes[need.index()].dependents.push(Edge { to: ix, on: EdgeOn::Success });
                ir.nodes[i].needs += 1;
            }
            if let OnError::Goto(target) = ir.nodes[i].on_error {
                ir.nodes[i].dependents.push(Edge { to: target, on: EdgeOn::Failure });
                ir.nodes[target.index()].needs += 1;
            }
        }
        ir.entries = ir.indices().filter(|ix| ir.node(*ix).needs == 0).collect();
        let needed = |ix: &NodeIx| ir.node(*ix).dependents.iter().any(|edge| edge.on == EdgeOn::Success);
        ir.sinks = ir.indices().filter(|ix| !needed(ix)).collect();
    }

    fn add_compensations(&self, ir: &mut Ir) {
        for (i, drawn) in self.nodes.iter().enumerate().filter(|(_, drawn)| drawn.compensated) {
            let (of, ix) = (NodeIx(i as u32), NodeIx(ir.nodes.len() as u32));
            let undo = Drawn { id: format!("{}/compensate", drawn.id), max_attempts: 1, ..drawn.clone() };
            let undo =
                Node { role: Role::Compensation { of }, on_error: OnError::Fail, ..undo.node(&ir.by_id) };
            ir.by_id.insert(undo.id.clone(), ix);
            ir.nodes[i].compensation = Some(ix);
            ir.nodes.push(undo);
        }
    }
}

impl Drawn {
    fn node(&self, by_id: &HashMap<Arc<str>, NodeIx>) -> Node {
        let digest = Hash::of(format!("{self:?}").as_bytes());
        Node {
            id: self.id.as_str().into(),
            role: Role::Step,
            queue: self.queue.as_str().into(),
            priority: self.priority.unwrap_or(5),
            inherits_priority: self.priority.is_none(),
            join: if self.any { Join::Any } else { Join::All },
            needs: 0,
            dependents: Vec::new(),
            reads: self.needs.iter().filter_map(|need| by_id.get(need.as_str()).copied()).collect(),
            retry: RetryPolicy {
                max_attempts: self.max_attempts,
                backoff: Backoff::Fixed,
                initial: Duration::from_secs(1),
                max: Duration::from_secs(1),
                jitter: false,
                non_retryable: Vec::new(),
            },
            limit: self.limit,
            on_error: match &self.on_error {
                DrawnOnError::Fail => OnError::Fail,
                DrawnOnError::Continue => OnError::Continue,
                DrawnOnError::Goto(to) => {
                    by_id.get(to.as_str()).map_or(OnError::Fail, |ix| OnError::Goto(*ix))
                }
            },
            compensation: None,
            fingerprint: u64::from_be_bytes(digest.0[..8].try_into().unwrap_or_default()),
        }
    }
}
