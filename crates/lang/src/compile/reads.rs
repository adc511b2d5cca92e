//! Finds the nodes that each node's expressions read, and checks that they have ended by then.
//!
//! A node may read its ancestors only. Checking every pair would be quadratic, so one pass over the graph checks 64
//! targets, a bit each, over the part of the order between the targets and their readers.

use std::collections::HashMap;

use switchyard_core::ir::{Ir, NodeIx, Role};

use crate::expr::Refs;
use crate::problem::{At, Problems, Step};

use super::graph;

/// The owner of an expression. The numbers are positions in the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Step(usize),
    Compensation(usize),
    Output,
}

/// One `nodes.<target>` in an expression.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) reader: Reader,
    pub(super) target: String,
    pub(super) at: Vec<Step>,
}

/// The nodes and variables that the expressions of a workflow mention.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    pub(super) readings: Vec<Read>,
    /// Whether an expression may read `run.scheduled_at`.
    pub(super) schedule: bool,
}

impl Mentions {
    pub(super) fn record(&mut self, reader: Reader, at: &At<'_>, refs: &Refs) {
        self.schedule |= refs.schedule;
        for target in &refs.nodes {
            self.readings.push(Read { reader, target: target.clone(), at: at.steps() });
        }
    }
}

/// A read whose target must be an ancestor of its reader.
pub(super) struct Question<'a> {
    reader: NodeIx,
    target: NodeIx,
    read: &'a Read,
}

/// Fills in [`Node::reads`](switchyard_core::ir::Node::reads), and returns the reads that must be checked against the
/// graph.
pub(super) fn resolve<'r>(ir: &mut Ir, reads: &'r [Read], problems: &mut Problems) -> Vec<Question<'r>> {
    let mut questions = Vec::new();
    for read in reads {
        let target = match ir.find(&read.target) {
            Some(target) if ir.node(target).role == Role::Step => target,
            _ => {
                problems.with_steps(&read.at, |at, problems| {
                    graph::unknown_node(ir, &read.target, at, problems);
                });
                continue;
            }
        };
        let (vertex, reader) = match read.reader {
            Reader::Step(index) => (Some(index), Some(NodeIx(index as u32))),
            Reader::Compensation(index) => (Some(index), ir.nodes[index].compensation),
            Reader::Output => (None, ir.output),
        };
        let own = matches!(read.reader, Reader::Compensation(index) if index == target.index());
        if let Some(vertex) = vertex
            && !own
        {
            questions.push(Question { reader: NodeIx(vertex as u32), target, read });
        }
        if let Some(reader) = reader {
            ir.nodes[reader.index()].reads.push(target);
        }
    }
    for node in &mut ir.nodes {
        node.reads.sort_unstable();
        node.reads.dedup();
    }
    questions
}

/// Refuses reads of nodes that may not have ended by then.
pub(super) fn check(ir: &Ir, mut questions: Vec<Question<'_>>, order: &[NodeIx], problems: &mut Problems) {
    let mut place = vec![0u32; ir.nodes.len()];
    for (at, ix) in order.iter().enumerate() {
        place[ix.index()] = at as u32;
    }
    questions.retain(|question| !is_direct(ir, question));
    questions.sort_by_key(|question| place[question.target.index()]);
    let mut marks = vec![0u64; ir.nodes.len()];
    let mut rest = questions.as_slice();
    while !rest.is_empty() {
        let (bits, taken) = take_block(rest);
        let (block, later) = rest.split_at(taken);
        rest = later;
        for question in unanswered(ir, block, &bits, order, &place, &mut marks) {
            refuse(ir, question, problems);
        }
    }
}

/// Whether the reader needs the target directly: the common case, without a search.
fn is_direct(ir: &Ir, question: &Question<'_>) -> bool {
    let dependents = &ir.node(question.target).dependents;
    // The search handles a node with very many dependents, because all its readers share it.
    dependents.len() <= 32 && dependents.iter().any(|edge| edge.to == question.reader)
}

/// The next block: up to 64 different targets, a bit each, and the number of questions about them.
fn take_block(questions: &[Question<'_>]) -> (HashMap<NodeIx, u64>, usize) {
    let mut bits: HashMap<NodeIx, u64> = HashMap::with_capacity(64);
    for (taken, question) in questions.iter().enumerate() {
        if !bits.contains_key(&question.target) {
            if bits.len() == 64 {
                return (bits, taken);
            }
            bits.insert(question.target, 1 << bits.len());
        }
    }
    (bits, questions.len())
}

fn unanswered<'q, 'r>(
    ir: &Ir,
    block: &'q [Question<'r>],
    bits: &HashMap<NodeIx, u64>,
    order: &[NodeIx],
    place: &[u32],
    marks: &mut [u64],
) -> Vec<&'q Question<'r>> {
    let start = block.iter().map(|question| place[question.target.index()]).min().unwrap_or(0) as usize;
    let end = block.iter().map(|question| place[question.reader.index()]).max().unwrap_or(0) as usize;
    if start > end {
        return block.iter().collect();
    }
    let stretch = &order[start..=end];
    for ix in stretch {
        let passed = marks[ix.index()] | bits.get(ix).copied().unwrap_or(0);
        if passed != 0 {
            for edge in &ir.node(*ix).dependents {
                marks[edge.to.index()] |= passed;
            }
        }
    }
    let no = |question: &&Question<'_>| marks[question.reader.index()] & bits[&question.target] == 0;
    let answer = block.iter().filter(no).collect();
    for ix in stretch {
        marks[ix.index()] = 0;
        for edge in &ir.node(*ix).dependents {
            marks[edge.to.index()] = 0;
        }
    }
    answer
}

fn refuse(ir: &Ir, question: &Question<'_>, problems: &mut Problems) {
    let (reader, target) = (&ir.node(question.reader).id, &ir.node(question.target).id);
    let message = format!("`{reader}` reads `{target}`, which need not have ended by then");
    let hint = if reader == target {
        "a node cannot read its own output".to_owned()
    } else {
        format!("add `{target}` to the `needs` of `{reader}`")
    };
    problems.with_steps(&question.read.at, |at: &At<'_>, problems| problems.add(at, message, Some(hint)));
}
