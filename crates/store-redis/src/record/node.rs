//! `dag:{id}`: a line for each node. `scripts/includes/nodes.lua` reads and writes the same form.

use std::collections::BTreeMap;

use switchyard_core::Timestamp;
use switchyard_core::ir::{Ir, NodeIx};
use switchyard_core::run::{NodeProgress, NodeRun, NodeState};
use switchyard_store::StoreError;

use super::{Reader, Record, Written, wait};

/// The letters of the states, in the order of [`NodeState`]; `Q` is ready, `K` skipped.
const STATES: [(NodeState, &str); 8] = [
    (NodeState::Pending, "P"),
    (NodeState::Ready, "Q"),
    (NodeState::Running, "R"),
    (NodeState::Waiting, "W"),
    (NodeState::Succeeded, "S"),
    (NodeState::Failed, "F"),
    (NodeState::Skipped, "K"),
    (NodeState::Cancelled, "C"),
];

pub(crate) fn state_of(letter: &str) -> Option<NodeState> {
    STATES.iter().find(|(_, known)| *known == letter).map(|(state, _)| *state)
}

/// The words of a line, in order. Only a claim has the last two; a claim with a limit but without an entry has `-`
/// for the entry.
pub(crate) const WORDS: [&str; 14] = [
    "state",
    "attempt",
    "claim",
    "continues",
    "deliveries",
    "open",
    "fired",
    "started",
    "completed",
    "ended",
    "rounds",
    "more",
    "entry",
    "limit",
];

/// The index of the entry among the words.
pub(crate) const ENTRY: usize = WORDS.len() - 2;

/// The initial state of a node. A node in this state has no line.
fn untouched(ir: &Ir, ix: NodeIx) -> NodeRun {
    NodeRun { open_needs: ir.node(ix).needs, ..NodeRun::default() }
}

pub(super) fn write(written: &Written<'_>) -> BTreeMap<String, String> {
    let run = &written.stored_run.run;
    let touched = run.ir.indices().filter_map(|ix| {
        let held = run.node(ix).state == NodeState::Running;
        let entry = written.entries.get(&ix).filter(|_| held);
        let limit = written.stored_run.leases.get(&ix).filter(|_| held).and_then(|lease| lease.limit);
        let line = line(run.node(ix), run.accepted_at, entry, limit);
        let plain = self::line(&untouched(&run.ir, ix), run.accepted_at, None, None);
        (line != plain).then(|| (run.ir.node(ix).id.to_string(), line))
    });
    touched.collect()
}

fn line(node: &NodeRun, accepted_at: Timestamp, entry: Option<&String>, limit: Option<Timestamp>) -> String {
    let letter = STATES[node.state as usize].1;
    // Times count from acceptance, which keeps lines below the size at which Redis unpacks a hash.
    let moment = |at: Option<Timestamp>| {
        at.map_or_else(|| "-".to_owned(), |at| (at.as_millis() - accepted_at.as_millis()).to_string())
    };
    let mut line = format!(
        "{letter} {} {} {} {} {} {} {} {} {} {} {}",
        node.attempt,
        node.claim,
        u8::from(node.continues),
        node.deliveries,
        node.open_needs,
        node.fired,
        moment(node.started_at),
        moment(node.completed_at),
        node.ended_seq,
        node.rounds,
        u8::from(has_more(node)),
    );
    if entry.is_some() || limit.is_some() {
        line.push(' ');
        line.push_str(entry.map_or("-", String::as_str));
    }
    if limit.is_some() {
        line.push(' ');
        line.push_str(&moment(limit));
    }
    line
}

/// Whether the context has more of the node than its output. If not, scripts do not look for it.
fn has_more(node: &NodeRun) -> bool {
    node.error.is_some() || node.wait.is_some() || node.said.is_some()
}

/// The nodes, the stream entries of their claims, and the time limits of their claims.
type Nodes = (Vec<NodeRun>, BTreeMap<NodeIx, String>, BTreeMap<NodeIx, Timestamp>);

pub(super) fn read(reader: &Reader, record: &Record, ir: &Ir) -> Result<Nodes, StoreError> {
    let accepted_at = Timestamp::from_millis(reader.number(&record.run, "at")?);
    let (mut entries, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut nodes = Vec::with_capacity(ir.nodes.len());
    for ix in ir.indices() {
        let id = &*ir.node(ix).id;
        let mut node = match record.dag.get(id) {
            None => untouched(ir, ix),
            Some(line) => {
                let (node, entry, limit) = parse(line, accepted_at).ok_or_else(|| reader.damaged(id))?;
                entries.extend(entry.map(|entry| (ix, entry)));
                limits.extend(limit.map(|limit| (ix, limit)));
                node
            }
        };
        node.output = reader.json(&record.context, &format!("{id}:output"))?;
        node.error = reader.json(&record.context, &format!("{id}:error"))?;
        node.wait = wait::read(reader, record, id)?;
        if let Some(chunks) = reader.json(&record.context, &format!("{id}:chunks"))? {
            let checkpoint = reader.json(&record.context, &format!("{id}:checkpoint"))?;
            let logged = reader.json(&record.context, &format!("{id}:logged"))?.unwrap_or_default();
            node.said = Some(Box::new(NodeProgress { checkpoint, chunks, logged }));
        }
        nodes.push(node);
    }
    Ok((nodes, entries, limits))
}

type Parsed = (NodeRun, Option<String>, Option<Timestamp>);

fn parse(line: &str, accepted_at: Timestamp) -> Option<Parsed> {
    let mut words = line.split(' ');
    let mut word = || words.next();
    let moment = |word: &str| match word {
        "-" => Some(None),
        offset => Some(Some(Timestamp::from_millis(accepted_at.as_millis() + offset.parse::<i64>().ok()?))),
    };
    let node = NodeRun {
        state: state_of(word()?)?,
        attempt: word()?.parse().ok()?,
        claim: word()?.parse().ok()?,
        continues: word()? == "1",
        deliveries: word()?.parse().ok()?,
        open_needs: word()?.parse().ok()?,
        fired: word()?.parse().ok()?,
        started_at: moment(word()?)?,
        completed_at: moment(word()?)?,
        ended_seq: word()?.parse().ok()?,
        rounds: word()?.parse().ok()?,
        ..NodeRun::default()
    };
    let _more = word()?;
    let entry = word().filter(|entry| *entry != "-").map(str::to_owned);
    let limit = moment(word().unwrap_or("-"))?;
    Some((node, entry, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_line_has_a_name() {
        let zero = Timestamp::from_millis(0);
        let words =
            |entry: Option<&String>, limit| line(&NodeRun::default(), zero, entry, limit).split(' ').count();
        assert_eq!(words(None, None), WORDS.len() - 2);
        assert_eq!(words(Some(&"1-1".to_owned()), None), WORDS.len() - 1);
        assert_eq!(words(None, Some(zero)), WORDS.len());
    }
}
