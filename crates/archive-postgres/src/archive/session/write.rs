//! Writes the changes of a group, in one statement for each table and kind of change.

use switchyard_store::projection::RunRow;
use tokio_postgres::Error;

use super::Session;
use crate::archive::batch::RunChanges;
use crate::archive::group::Group;
use crate::archive::rows::{millis, to_json};
use crate::pool::Param;
use crate::text;

/// A run that gets new events: its id, its row, and the changes to the row.
type ChangedRun<'a, 'g> = (String, &'a RunRow, &'a RunChanges<'g>);

fn changed<'a, 'g>(group: &'a Group<'g>) -> impl Iterator<Item = ChangedRun<'a, 'g>> {
    group.batch.runs.iter().filter_map(|(id, changes)| {
        let grown = group.runs.get(id)?;
        Some((id.to_string(), &grown.row, changes))
    })
}

impl Session {
    pub(super) async fn add_runs(&self, group: &Group<'_>) -> Result<(), Error> {
        let rows: Vec<_> = changed(group)
            .filter_map(|(id, row, changes)| changes.accepted.map(|(with, at)| (id, row, changes, with, at)))
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = rows.iter().map(|(id, ..)| id).collect();
        let workflows: Vec<_> = rows.iter().map(|(.., with, _)| text::stored(&with.workflow)).collect();
        let versions: Vec<_> =
            rows.iter().map(|(.., with, _)| with.workflow_version.map(u32::cast_signed)).collect();
        let definitions: Vec<_> = rows.iter().map(|(.., with, _)| with.definition.to_string()).collect();
        let statuses: Vec<_> = rows.iter().map(|(_, row, ..)| row.status.as_str()).collect();
        let queued: Vec<_> = rows.iter().map(|(_, row, ..)| row.queued).collect();
        let accepted: Vec<_> = rows.iter().map(|(.., at)| at.as_millis()).collect();
        let parents: Vec<_> = rows
            .iter()
            .map(|(.., with, _)| with.parent.as_ref().map(|parent| parent.run.to_string()))
            .collect();
        let keys: Vec<_> = rows
            .iter()
            .map(|(.., with, _)| with.idempotency.as_ref().map(|idempotency| text::stored(&idempotency.key)))
            .collect();
        let bodies: Vec<_> =
            rows.iter().map(|(.., with, _)| with.idempotency.as_ref().map(|i| i.body.to_string())).collect();
        let Ends { at: ends, errors, nodes, codes } = ends(rows.iter().map(|(_, _, changes, ..)| *changes));
        let parent_nodes: Vec<_> = rows
            .iter()
            .map(|(.., with, _)| with.parent.as_ref().map(|parent| text::stored(&parent.node)))
            .collect();
        let schedules: Vec<_> =
            rows.iter().map(|(.., with, _)| with.schedule.as_deref().map(text::stored)).collect();
        let seqs: Vec<_> = rows.iter().map(|(_, row, ..)| row.last_seq.cast_signed()).collect();
        let params: [Param<'_>; 17] = [
            &ids,
            &workflows,
            &versions,
            &definitions,
            &statuses,
            &queued,
            &accepted,
            &parents,
            &keys,
            &bodies,
            &ends,
            &errors,
            &seqs,
            &parent_nodes,
            &schedules,
            &nodes,
            &codes,
        ];
        self.client.execute(&self.add_runs, &params).await.map(drop)
    }

    pub(super) async fn add_labels(&self, group: &Group<'_>) -> Result<(), Error> {
        let (mut runs, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (id, _, changes) in changed(group) {
            let Some((accepted, _)) = changes.accepted else { continue };
            for (key, value) in &accepted.labels {
                runs.push(id.clone());
                keys.push(text::stored(key));
                values.push(text::stored(value));
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        self.client.execute(&self.add_labels, &[&runs, &keys, &values]).await.map(drop)
    }

    /// Updates runs that have new events but no other changes.
    pub(super) async fn move_runs(&self, group: &Group<'_>) -> Result<(), Error> {
        let (ids, seqs): (Vec<_>, Vec<_>) = group
            .runs
            .iter()
            .filter(|(id, _)| !group.batch.runs.contains_key(*id))
            .map(|(id, run)| (id.to_string(), run.row.last_seq.cast_signed()))
            .unzip();
        if ids.is_empty() {
            return Ok(());
        }
        self.client.execute(&self.move_runs, &[&ids, &seqs]).await.map(drop)
    }

    pub(super) async fn turn_runs(&self, group: &Group<'_>) -> Result<(), Error> {
        let turned: Vec<_> = changed(group).filter(|(.., changes)| changes.accepted.is_none()).collect();
        if turned.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = turned.iter().map(|(id, ..)| id).collect();
        let seqs: Vec<_> = turned.iter().map(|(_, row, _)| row.last_seq.cast_signed()).collect();
        let statuses: Vec<_> = turned.iter().map(|(_, row, _)| row.status.as_str()).collect();
        let queued: Vec<_> = turned.iter().map(|(_, row, _)| row.queued).collect();
        let has_end: Vec<_> = turned.iter().map(|(.., changes)| changes.end.is_some()).collect();
        let Ends { at: ends, errors, nodes, codes } = ends(turned.iter().map(|(.., changes)| *changes));
        let params: [Param<'_>; 9] =
            [&ids, &seqs, &statuses, &queued, &has_end, &ends, &errors, &nodes, &codes];
        self.client.execute(&self.turn_runs, &params).await.map(drop)
    }

    pub(super) async fn add_events(&self, group: &Group<'_>) -> Result<(), Error> {
        let mut runs = Vec::new();
        let (mut seqs, mut moments, mut kinds, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut checksums = Vec::new();
        for (id, run) in &group.runs {
            let id = id.to_string();
            for written in &run.new {
                runs.push(id.clone());
                seqs.push(written.event.seq.cast_signed());
                moments.push(written.event.at.as_millis());
                kinds.push(written.event.kind.name());
                bodies.push(written.body.as_str());
                checksums.push(i64::from(written.checksum));
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        let params: [Param<'_>; 6] = [&runs, &seqs, &moments, &kinds, &bodies, &checksums];
        self.client.execute(&self.add_events, &params).await.map(drop)
    }

    pub(super) async fn add_operations(&self, group: &Group<'_>) -> Result<(), Error> {
        let applied = &group.batch.operations;
        if applied.is_empty() {
            return Ok(());
        }
        let runs: Vec<_> = applied.iter().map(|a| a.run.to_string()).collect();
        let ids: Vec<_> = applied.iter().map(|a| a.operation.id.as_str()).collect();
        let seqs: Vec<_> = applied.iter().map(|a| a.seq.cast_signed()).collect();
        let commands: Vec<_> = applied.iter().map(|a| a.operation.command.to_string()).collect();
        self.client.execute(&self.add_operations, &[&runs, &ids, &seqs, &commands]).await.map(drop)
    }

    pub(super) async fn decide_approvals(&self, group: &Group<'_>) -> Result<(), Error> {
        let decided = &group.batch.approvals.decided;
        if decided.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = decided.keys().map(|id| text::stored(id.as_str())).collect();
        let statuses: Vec<_> = decided.values().map(|d| d.status.as_str()).collect();
        let moments: Vec<_> = decided.values().map(|d| d.at.as_millis()).collect();
        let by: Vec<_> = decided.values().map(|d| text::stored(d.by)).collect();
        let comments: Vec<_> = decided.values().map(|d| d.comment.map(text::stored)).collect();
        self.client
            .execute(&self.decide_approvals, &[&ids, &statuses, &moments, &by, &comments])
            .await
            .map(drop)
    }

    pub(super) async fn close_approvals(&self, group: &Group<'_>) -> Result<(), Error> {
        let closed = &group.batch.approvals.closed;
        if closed.is_empty() {
            return Ok(());
        }
        let runs: Vec<_> = closed.iter().map(|c| c.run.to_string()).collect();
        let nodes: Vec<_> = closed.iter().map(|c| c.node.map(text::stored)).collect();
        let statuses: Vec<_> = closed.iter().map(|c| c.status.as_str()).collect();
        self.client.execute(&self.close_approvals, &[&runs, &nodes, &statuses]).await.map(drop)
    }

    pub(super) async fn request_approvals(&self, group: &Group<'_>) -> Result<(), Error> {
        let requested = &group.batch.approvals.requested;
        if requested.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = requested.iter().map(|a| text::stored(a.request.approval.as_str())).collect();
        let runs: Vec<_> = requested.iter().map(|a| a.run.to_string()).collect();
        let nodes: Vec<_> = requested.iter().map(|a| text::stored(a.node)).collect();
        let statuses: Vec<_> = requested.iter().map(|a| a.status.as_str()).collect();
        let approvers: Vec<_> =
            requested.iter().map(|a| a.request.approver.as_deref().map(text::stored)).collect();
        let prompts: Vec<_> =
            requested.iter().map(|a| a.request.prompt.as_deref().map(text::stored)).collect();
        let payloads: Vec<_> = requested.iter().map(|a| to_json(&a.request.payload)).collect();
        let created: Vec<_> = requested.iter().map(|a| a.created_at.as_millis()).collect();
        let timeouts: Vec<_> = requested.iter().map(|a| millis(a.request.timeout_at)).collect();
        let decided_at: Vec<_> =
            requested.iter().map(|a| a.decided.as_ref().map(|d| d.at.as_millis())).collect();
        let decided_by: Vec<_> =
            requested.iter().map(|a| a.decided.as_ref().map(|d| text::stored(d.by))).collect();
        let comments: Vec<_> =
            requested.iter().map(|a| a.decided.as_ref().and_then(|d| d.comment.map(text::stored))).collect();
        let params: [Param<'_>; 12] = [
            &ids,
            &runs,
            &nodes,
            &statuses,
            &approvers,
            &prompts,
            &payloads,
            &created,
            &timeouts,
            &decided_at,
            &decided_by,
            &comments,
        ];
        self.client.execute(&self.request_approvals, &params).await.map(drop)
    }

    pub(super) async fn revive_dead_letters(&self, group: &Group<'_>) -> Result<(), Error> {
        if group.batch.dead_letters.revived.is_empty() {
            return Ok(());
        }
        let (runs, nodes): (Vec<_>, Vec<_>) = group
            .batch
            .dead_letters
            .revived
            .iter()
            .map(|(run, node)| (run.to_string(), text::stored(node)))
            .unzip();
        self.client.execute(&self.revive_dead_letters, &[&runs, &nodes]).await.map(drop)
    }

    pub(super) async fn bury_dead_letters(&self, group: &Group<'_>) -> Result<(), Error> {
        let buried = &group.batch.dead_letters.buried;
        if buried.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = buried.iter().map(|letter| &*letter.id).collect();
        let kinds: Vec<_> = buried.iter().map(|letter| letter.kind.as_str()).collect();
        let runs: Vec<_> = buried.iter().map(|letter| letter.run_id.map(|run| run.to_string())).collect();
        let nodes: Vec<_> = buried.iter().map(|letter| letter.node.as_deref().map(text::stored)).collect();
        let seqs: Vec<_> = buried.iter().map(|letter| letter.seq.map(u64::cast_signed)).collect();
        let reasons: Vec<_> = buried.iter().map(|letter| text::stored(&letter.reason)).collect();
        let moments: Vec<_> = buried.iter().map(|letter| letter.at.as_millis()).collect();
        let params: [Param<'_>; 7] = [&ids, &kinds, &runs, &nodes, &seqs, &reasons, &moments];
        self.client.execute(&self.bury_dead_letters, &params).await.map(drop)
    }

    pub(super) async fn mark(&self, group: &Group<'_>, wanted: bool) -> Result<(), Error> {
        let new = group.runs.values().flat_map(|run| &run.new);
        match new.map(|written| written.event.at).max().filter(|_| wanted) {
            Some(newest) => self.client.execute(&self.mark, &[&newest.as_millis()]).await.map(drop),
            None => Ok(()),
        }
    }

    pub(super) async fn hold_payloads(&self, group: &Group<'_>) -> Result<(), Error> {
        if group.batch.payloads.is_empty() {
            return Ok(());
        }
        let (hashes, holders): (Vec<_>, Vec<_>) =
            group.batch.payloads.iter().map(|(hash, run)| (hash.to_string(), run.to_string())).unzip();
        self.client.execute(&self.hold_payloads, &[&hashes, &holders]).await.map(drop)
    }
}

/// When and why runs ended, as columns.
#[derive(Default)]
struct Ends {
    at: Vec<Option<i64>>,
    errors: Vec<Option<String>>,
    nodes: Vec<Option<String>>,
    codes: Vec<Option<String>>,
}

fn ends<'a, 'g: 'a>(runs: impl Iterator<Item = &'a RunChanges<'g>>) -> Ends {
    let mut ends = Ends::default();
    let stored = |text: &str| text::stored(text).into_owned();
    for run in runs {
        let error = run.end.as_ref().and_then(|end| end.error);
        ends.at.push(run.end.as_ref().and_then(|end| millis(end.at)));
        ends.errors.push(error.map(to_json));
        ends.nodes.push(error.and_then(|error| error.node.as_deref()).map(stored));
        ends.codes.push(error.map(|error| stored(&error.code)));
    }
    ends
}
