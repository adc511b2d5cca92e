//! Compiles a definition to a program.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use switchyard_base::Diagnostics;
use switchyard_core::Hash;
use switchyard_core::ir::{AttemptLimit, Ir, Join, Node, NodeIx, OnError, Role};
use switchyard_core::retry::RetryPolicy;

use crate::bundle::{self, Loader};
use crate::decode;
use crate::expr::vars;
use crate::input::{self, InputSchema};
use crate::limits;
use crate::problem::{At, Problems};
use crate::program::{CompiledKind, CompiledNode, CompiledTransform, Program};
use crate::source::Tree;
use crate::spec::{Definition, JoinSpec, NodeSpec};

mod graph;
mod kinds;
mod names;
mod output;
mod policy;
mod reads;
mod shapes;

use reads::{Mentions, Read, Reader};

impl Program {
    /// Compiles YAML or JSON text. Diagnostics call the text `name`, usually its path.
    pub fn compile_text(name: &str, bytes: &[u8]) -> Result<Self, Diagnostics> {
        compile_source(name, bytes, |definition| {
            input::adopt(definition);
            Ok(())
        })
    }

    /// Compiles text whose child workflows may be in other files, read with `loader`.
    pub fn compile_bundled(
        name: &str,
        bytes: &[u8],
        base_dir: &Path,
        loader: &Loader<'_>,
    ) -> Result<Self, Diagnostics> {
        compile_source(name, bytes, |definition| {
            bundle::bundle(definition, base_dir, loader)?;
            input::adopt(definition);
            Ok(())
        })
    }

    /// Compiles JSON that is already parsed.
    pub fn compile_value(value: &Value) -> Result<Self, Diagnostics> {
        let tree = Tree::from_value(value.clone())?;
        compile_tree(&tree, None, |definition| {
            input::adopt(definition);
            Ok(())
        })
    }

    /// Compiles a definition that is already decoded, such as a patched one, under the rules that it was accepted with.
    pub fn compile(definition: Definition) -> Result<Self, Diagnostics> {
        let mut problems = Problems::default();
        let program = compile(definition, &At::Root, Reading::Stored, 0, &mut problems);
        decode::finish(program, problems, None)
    }

    /// Compiles a stored [`Program::canonical`]: the same program with the same hash.
    pub fn from_canonical(text: &str) -> Result<Self, Diagnostics> {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => Self::compile(decode::decode_value(&value)?),
            // Not valid JSON: the text parser reports where.
            Err(_) => {
                let (tree, _) = Tree::parse("stored definition", text.as_bytes())?;
                Self::compile(decode::decode_value(&tree.into_value())?)
            }
        }
    }
}

fn compile_source(
    name: &str,
    bytes: &[u8],
    complete: impl FnOnce(&mut Definition) -> Result<(), Diagnostics>,
) -> Result<Program, Diagnostics> {
    let (tree, text) = Tree::parse(name, bytes)?;
    compile_tree(&tree, Some((&tree, text.as_str())), complete).map_err(|diagnostics| {
        match diagnostics.file {
            None => diagnostics.in_file(name),
            Some(_) => diagnostics,
        }
    })
}

/// Decodes and compiles. A part that cannot be decoded does not hide problems elsewhere: the rest is compiled as well.
fn compile_tree(
    tree: &Tree,
    source: Option<(&Tree, &str)>,
    complete: impl FnOnce(&mut Definition) -> Result<(), Diagnostics>,
) -> Result<Program, Diagnostics> {
    let mut problems = Problems::default();
    let decoded = decode::definition(tree, &At::Root, &mut problems);
    let Some(mut definition) = decoded else { return decode::finish(None, problems, source) };
    let reading = if problems.count() > 0 { Reading::Partial } else { Reading::New };
    if let Err(diagnostics) = complete(&mut definition) {
        problems.finish(source)?;
        return Err(diagnostics);
    }
    let program = compile(definition, &At::Root, reading, 0, &mut problems);
    decode::finish(program, problems, source)
}

/// The rules under which a definition is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Accepted before: the compiler refuses only what cannot be executed, so that stored definitions stay readable.
    Stored,
    New,
    /// New, and partly not decoded: the compiler skips checks that need the whole graph.
    Partial,
}

impl Reading {
    fn is_new(self) -> bool {
        self != Self::Stored
    }
}

/// Compiles a definition. `None` if it has a problem.
fn compile(
    definition: Definition,
    at: &At<'_>,
    reading: Reading,
    depth: usize,
    problems: &mut Problems,
) -> Option<Program> {
    let before = problems.count();
    if !within_limits(&definition, at, depth, problems) {
        return None;
    }
    names::check_workflow_name(&definition.name, &at.key("name"), problems);
    let input = InputSchema::compile(&definition, &at.key("input"), problems);
    let concurrency = definition.concurrency.as_ref().map(|spec| {
        let at = at.key("concurrency");
        (kinds::text_template(&spec.key, vars::SUBMISSION, &at.key("key"), problems), spec.limit)
    });
    let labels = definition.labels.iter().map(|(key, value)| {
        let at = at.key("labels");
        (key.as_str().into(), kinds::text_template(value, vars::SUBMISSION, &at.key(key), problems))
    });
    let labels = labels.collect();
    let output = output::effective(&definition);
    let (mentions, secrets) = (Mentions::default(), Vec::new());
    let mut building =
        Building { definition: &definition, output, reading, depth, problems, mentions, secrets };
    let nodes = building.nodes(at);
    let mentions = std::mem::take(&mut building.mentions);
    let ir = building.ir(at, &mentions.readings)?;
    if problems.count() > before {
        return None;
    }
    let canonical: Arc<str> = canonical(&definition).into();
    let hash = Hash::of(canonical.as_bytes());
    let ir = Arc::new(Ir { hash, ..ir });
    let (nodes, definition) = (nodes?, Arc::new(definition));
    let reads_schedule = mentions.schedule;
    Some(Program { ir, nodes, definition, canonical, hash, input, concurrency, labels, reads_schedule })
}

/// The canonical text of a definition. A definition has string keys and finite numbers, so it always serialises.
pub(crate) fn canonical(definition: &Definition) -> String {
    serde_json::to_string(definition).unwrap_or_default()
}

fn within_limits(definition: &Definition, at: &At<'_>, depth: usize, problems: &mut Problems) -> bool {
    let nodes = definition.nodes.len();
    if depth > limits::BODY_DEPTH_MAX {
        let message =
            format!("child workflows are nested deeper than the limit of {} levels", limits::BODY_DEPTH_MAX);
        let hint = "submit the inner one under its own name and use `workflow: <name>`".to_owned();
        problems.add_at_key(at, message, Some(hint));
        return false;
    }
    if nodes == 0 {
        problems.add_at_key(&at.key("nodes"), "a workflow needs at least one node", None);
        return false;
    }
    if nodes > limits::NODES_MAX {
        let message = format!("{nodes} nodes, more than the limit of {}", limits::NODES_MAX);
        let hint = "use `map` for many of the same, or split the workflow".to_owned();
        problems.add_at_key(&at.key("nodes"), message, Some(hint));
        return false;
    }
    true
}

/// The state of compiling one definition.
struct Building<'a> {
    definition: &'a Definition,
    output: Option<Value>,
    reading: Reading,
    depth: usize,
    problems: &'a mut Problems,
    mentions: Mentions,
    /// The secrets of the node that is being compiled.
    secrets: Vec<String>,
}

impl Building<'_> {
    /// Compiles the steps in the order of the definition, then compensations, then the output.
    fn nodes(&mut self, at_root: &At<'_>) -> Option<Vec<CompiledNode>> {
        let at = &at_root.key("nodes");
        let definition = self.definition;
        let mut compiled = Vec::with_capacity(definition.nodes.len() + 1);
        for (index, (id, node)) in definition.nodes.iter().enumerate() {
            names::check_node_id(id, &at.key(id), self.problems);
            compiled.push(self.step(index, id, node, &at.key(id)));
        }
        for (index, (id, node)) in definition.nodes.iter().enumerate() {
            if node.common.compensate.is_some() {
                compiled.push(self.compensation(index, id, node, &at.key(id).key("compensate")));
            }
        }
        if let Some(output) = self.output.clone() {
            compiled.push(Some(self.output(&output, &at_root.key("output"))));
        }
        compiled.into_iter().collect()
    }

    fn output(&mut self, output: &Value, at: &At<'_>) -> CompiledNode {
        let value = self.template(Reader::Output, output, vars::NODE, at);
        CompiledNode {
            kind: CompiledKind::Transform(CompiledTransform { value: Some(value) }),
            when: None,
            input: None,
            timeout: None,
            cache: None,
            secrets: Vec::new(),
        }
    }

    fn ir(&mut self, at: &At<'_>, reads: &[Read]) -> Option<Ir> {
        let definition = self.definition;
        let mut ir = Ir {
            hash: Hash::of(b""),
            name: definition.name.as_str().into(),
            nodes: Vec::with_capacity(definition.nodes.len() + 1),
            by_id: HashMap::with_capacity(definition.nodes.len() + 1),
            entries: Vec::new(),
            sinks: Vec::new(),
            output: None,
            parallelism: definition.parallelism.map(Into::into),
            deadline: definition.deadline.map(|deadline| deadline.0),
            inherit_labels: definition.inherit_labels,
        };
        for (id, node) in &definition.nodes {
            let at = at.key("nodes");
            let retry = policy::retry(node.common.retry.as_ref(), &at.key(id), self.problems);
            push(&mut ir, step_node(id, node, retry));
        }
        graph::connect(&mut ir, definition, &at.key("nodes"), self.problems)?;
        let order = graph::topological_order(&ir, &at.key("nodes"), self.problems);
        self.push_hidden(&mut ir, at);
        let questions = reads::resolve(&mut ir, reads, self.problems);
        let order = order?;
        if self.reading != Reading::Partial {
            reads::check(&ir, questions, &order, self.problems);
        }
        graph::fingerprint(&mut ir, definition);
        Some(ir)
    }

    fn push_hidden(&mut self, ir: &mut Ir, at: &At<'_>) {
        let definition = self.definition;
        for (index, (id, node)) in definition.nodes.iter().enumerate() {
            let Some(compensate) = &node.common.compensate else { continue };
            let at = at.key("nodes");
            let retry =
                policy::retry(compensate.common.retry.as_ref(), &at.key(id).key("compensate"), self.problems);
            let role = Role::Compensation { of: NodeIx(index as u32) };
            let queue = policy::queue(&compensate.kind);
            let priority = compensate.common.priority;
            let limit = policy::limit(&compensate.kind, compensate.common.timeout);
            let hidden = hidden_node(&format!("{id}/compensate"), role, queue, priority, retry);
            let ix = push(ir, Node { limit, ..hidden });
            ir.nodes[index].compensation = Some(ix);
        }
        if self.output.is_some() {
            let queue = "transform".into();
            let node = hidden_node("/output", Role::Output, queue, None, RetryPolicy::none());
            ir.output = Some(push(ir, node));
        }
    }
}

fn push(ir: &mut Ir, node: Node) -> NodeIx {
    let ix = NodeIx(ir.nodes.len() as u32);
    ir.by_id.insert(node.id.clone(), ix);
    ir.nodes.push(node);
    ix
}

fn step_node(id: &str, spec: &NodeSpec, retry: RetryPolicy) -> Node {
    let priority = spec.common.priority;
    let join = match spec.common.join {
        JoinSpec::All => Join::All,
        JoinSpec::Any => Join::Any,
    };
    let limit = policy::limit(&spec.kind, spec.common.timeout);
    Node { join, limit, ..hidden_node(id, Role::Step, policy::queue(&spec.kind), priority, retry) }
}

fn hidden_node(id: &str, role: Role, queue: Arc<str>, priority: Option<u8>, retry: RetryPolicy) -> Node {
    Node {
        id: id.into(),
        role,
        queue,
        priority: priority.unwrap_or(policy::PRIORITY_DEFAULT),
        inherits_priority: priority.is_none(),
        join: Join::All,
        needs: 0,
        dependents: Vec::new(),
        reads: Vec::new(),
        retry,
        limit: AttemptLimit::Unlimited,
        on_error: OnError::Fail,
        compensation: None,
        fingerprint: 0,
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::EVERY_KIND;
