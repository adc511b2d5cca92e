//! What a group changes, in one statement for each table and kind of change.

use switchyard_core::RunId;
use tokio_postgres::Error;

use super::Session;
use crate::archive::group::{Group, Grown};
use crate::archive::rows::{millis, to_json};
use crate::pool::Param;
use crate::text;

pub(super) type Runs<'a, 'g> = [(&'a RunId, &'a Grown<'g>)];

impl Session {
    pub(super) async fn add_runs(&self, new: &Runs<'_, '_>) -> Result<(), Error> {
        let rows: Vec<_> = new
            .iter()
            .filter_map(|(id, run)| run.accepted().map(|(event, with)| (id, run, event, with)))
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = rows.iter().map(|(id, ..)| id.to_string()).collect();
        let workflows: Vec<_> = rows.iter().map(|(.., with)| text::stored(&with.workflow)).collect();
        let versions: Vec<_> =
            rows.iter().map(|(.., with)| with.workflow_version.map(u32::cast_signed)).collect();
        let definitions: Vec<_> = rows.iter().map(|(.., with)| with.definition.to_string()).collect();
        let statuses: Vec<_> = rows.iter().map(|(_, run, ..)| run.standing.status.as_str()).collect();
        let queued: Vec<_> = rows.iter().map(|(_, run, ..)| run.standing.queued).collect();
        let accepted: Vec<_> = rows.iter().map(|(_, _, event, _)| event.at.as_millis()).collect();
        let parents: Vec<_> =
            rows.iter().map(|(.., with)| with.parent.as_ref().map(|parent| parent.run.to_string())).collect();
        let keys: Vec<_> = rows
            .iter()
            .map(|(.., with)| with.idempotency.as_ref().map(|idempotency| text::stored(&idempotency.key)))
            .collect();
        let bodies: Vec<_> =
            rows.iter().map(|(.., with)| with.idempotency.as_ref().map(|i| i.body.to_string())).collect();
        let (ends, errors) = ends(rows.iter().map(|(_, run, ..)| **run));
        let seqs: Vec<_> = rows.iter().map(|(_, run, ..)| run.last_seq().cast_signed()).collect();
        let params: [Param<'_>; 13] = [
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
        ];
        self.client.execute(&self.add_runs, &params).await.map(drop)
    }

    pub(super) async fn move_runs(&self, moved: &Runs<'_, '_>) -> Result<(), Error> {
        if moved.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = moved.iter().map(|(id, _)| id.to_string()).collect();
        let seqs: Vec<_> = moved.iter().map(|(_, run)| run.last_seq().cast_signed()).collect();
        self.client.execute(&self.move_runs, &[&ids, &seqs]).await.map(drop)
    }

    pub(super) async fn turn_runs(&self, turned: &Runs<'_, '_>) -> Result<(), Error> {
        if turned.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = turned.iter().map(|(id, _)| id.to_string()).collect();
        let seqs: Vec<_> = turned.iter().map(|(_, run)| run.last_seq().cast_signed()).collect();
        let statuses: Vec<_> = turned.iter().map(|(_, run)| run.standing.status.as_str()).collect();
        let queued: Vec<_> = turned.iter().map(|(_, run)| run.standing.queued).collect();
        let has_end: Vec<_> = turned.iter().map(|(_, run)| run.standing.end.is_some()).collect();
        let (ends, errors) = ends(turned.iter().map(|(_, run)| *run));
        let params: [Param<'_>; 7] = [&ids, &seqs, &statuses, &queued, &has_end, &ends, &errors];
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

    /// The operations that new events carry.
    pub(super) async fn remember(&self, group: &Group<'_>) -> Result<(), Error> {
        let (mut runs, mut ids) = (Vec::new(), Vec::new());
        let (mut seqs, mut commands) = (Vec::new(), Vec::new());
        for written in group.runs.values().flat_map(|run| &run.new) {
            if let Some(operation) = written.event.kind.operation() {
                runs.push(written.event.run.to_string());
                ids.push(operation.id.as_str());
                seqs.push(written.event.seq.cast_signed());
                commands.push(operation.command.to_string());
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        self.client.execute(&self.remember, &[&runs, &ids, &seqs, &commands]).await.map(drop)
    }

    pub(super) async fn decide(&self, group: &Group<'_>) -> Result<(), Error> {
        let decided = &group.approvals.decided;
        if decided.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = decided.keys().map(|id| text::stored(id.as_str())).collect();
        let statuses: Vec<_> = decided.values().map(|d| d.status.as_str()).collect();
        let moments: Vec<_> = decided.values().map(|d| d.at.as_millis()).collect();
        let by: Vec<_> = decided.values().map(|d| text::stored(&d.by)).collect();
        let comments: Vec<_> = decided.values().map(|d| text::stored(&d.comment)).collect();
        self.client.execute(&self.decide, &[&ids, &statuses, &moments, &by, &comments]).await.map(drop)
    }

    pub(super) async fn withdraw(&self, group: &Group<'_>) -> Result<(), Error> {
        let withdrawn = &group.approvals.withdrawn;
        if withdrawn.is_empty() {
            return Ok(());
        }
        let runs: Vec<_> = withdrawn.iter().map(|w| w.run.to_string()).collect();
        let nodes: Vec<_> = withdrawn.iter().map(|w| w.node.as_deref().map(text::stored)).collect();
        let statuses: Vec<_> = withdrawn.iter().map(|w| w.status.as_str()).collect();
        self.client.execute(&self.withdraw, &[&runs, &nodes, &statuses]).await.map(drop)
    }

    pub(super) async fn ask(&self, group: &Group<'_>) -> Result<(), Error> {
        let asked = &group.approvals.asked;
        if asked.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = asked.iter().map(|a| text::stored(a.request.approval.as_str())).collect();
        let runs: Vec<_> = asked.iter().map(|a| a.run.to_string()).collect();
        let nodes: Vec<_> = asked.iter().map(|a| text::stored(&a.node)).collect();
        let statuses: Vec<_> = asked.iter().map(|a| a.status.as_str()).collect();
        let approvers: Vec<_> =
            asked.iter().map(|a| a.request.approver.as_deref().map(text::stored)).collect();
        let prompts: Vec<_> = asked.iter().map(|a| a.request.prompt.as_deref().map(text::stored)).collect();
        let payloads: Vec<_> = asked.iter().map(|a| to_json(&a.request.payload)).collect();
        let created: Vec<_> = asked.iter().map(|a| a.created_at.as_millis()).collect();
        let timeouts: Vec<_> = asked.iter().map(|a| millis(a.request.timeout_at)).collect();
        let decided_at: Vec<_> = asked.iter().map(|a| a.decided.as_ref().map(|d| d.at.as_millis())).collect();
        let decided_by: Vec<_> =
            asked.iter().map(|a| a.decided.as_ref().map(|d| text::stored(&d.by))).collect();
        let comments: Vec<_> = asked
            .iter()
            .map(|a| {
                a.decided.as_ref().map(|d| text::stored(&d.comment)).filter(|comment| !comment.is_empty())
            })
            .collect();
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
        self.client.execute(&self.ask, &params).await.map(drop)
    }

    pub(super) async fn revive(&self, group: &Group<'_>) -> Result<(), Error> {
        if group.dead.revived.is_empty() {
            return Ok(());
        }
        let (runs, nodes): (Vec<_>, Vec<_>) =
            group.dead.revived.iter().map(|(run, node)| (run.to_string(), text::stored(node))).unzip();
        self.client.execute(&self.revive, &[&runs, &nodes]).await.map(drop)
    }

    pub(super) async fn bury(&self, group: &Group<'_>) -> Result<(), Error> {
        let buried = &group.dead.buried;
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
        self.client.execute(&self.bury, &params).await.map(drop)
    }

    pub(super) async fn mark(&self, group: &Group<'_>, wanted: bool) -> Result<(), Error> {
        let new = group.runs.values().flat_map(|run| &run.new);
        match new.map(|written| written.event.at).max().filter(|_| wanted) {
            Some(newest) => self.client.execute(&self.mark, &[&newest.as_millis()]).await.map(drop),
            None => Ok(()),
        }
    }

    pub(super) async fn hold(&self, group: &Group<'_>) -> Result<(), Error> {
        if group.payloads.is_empty() {
            return Ok(());
        }
        let (hashes, holders): (Vec<_>, Vec<_>) =
            group.payloads.iter().map(|(hash, run)| (hash.to_string(), run.to_string())).unzip();
        self.client.execute(&self.hold, &[&hashes, &holders]).await.map(drop)
    }
}

fn ends<'a, 'g: 'a>(runs: impl Iterator<Item = &'a Grown<'g>>) -> (Vec<Option<i64>>, Vec<Option<String>>) {
    runs.map(|run| match &run.standing.end {
        Some(end) => (millis(end.at), end.error.as_ref().map(to_json)),
        None => (None, None),
    })
    .unzip()
}
