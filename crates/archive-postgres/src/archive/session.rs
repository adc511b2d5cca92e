//! The connection that appends go through, and its statements. Each concerns any number of rows.

use switchyard_core::run::Event;
use switchyard_core::{RunId, Timestamp};
use switchyard_store::StoreError;
use tokio_postgres::{Client, Error, Row, Statement};

use super::group::{Group, Stored, StoredRun};
use super::rows::{approval_word, damaged, millis, parsed};
use crate::Target;
use crate::pool::Param;
use crate::text;

/// The statements look rows up by key, a few of many. Planned while a table is small they would go through all of it,
/// and go on like that until its statistics are renewed. Nobody keeps rows locked for longer than the time-outs: a
/// process that hangs must not hold up the others.
const SETTINGS: &str =
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
    SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// Locked in the order of ids, so that two processes never wait for each other.
const LOCK_RUNS: &str = "SELECT id, last_seq, status, queued FROM runs WHERE id = ANY($1::text[])
    ORDER BY id FOR NO KEY UPDATE";

const FIND_KEYS: &str = "SELECT id, idempotency_key FROM runs WHERE idempotency_key = ANY($1::text[])";

const FIND_EVENTS: &str = "SELECT run, seq, at, body FROM events
    JOIN unnest($1::text[], $2::bigint[]) AS wanted (run, seq) USING (run, seq)";

const ADD_RUNS: &str = "INSERT INTO runs (id, workflow, workflow_version, definition, status, queued, accepted_at,
        parent, idempotency_key, idempotency_body, ended_at, error, last_seq)
    SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::boolean[], $7::bigint[],
        $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[], $13::bigint[])";

const MOVE_RUNS: &str = "UPDATE runs SET last_seq = moved.last_seq
    FROM unnest($1::text[], $2::bigint[]) AS moved (id, last_seq) WHERE runs.id = moved.id";

const TURN_RUNS: &str =
    "UPDATE runs SET last_seq = turned.last_seq, status = turned.status, queued = turned.queued,
        ended_at = CASE WHEN turned.has_end THEN turned.ended_at ELSE runs.ended_at END,
        error = CASE WHEN turned.has_end THEN turned.error ELSE runs.error END
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::boolean[], $5::boolean[], $6::bigint[], $7::text[])
        AS turned (id, last_seq, status, queued, has_end, ended_at, error) WHERE runs.id = turned.id";

const ADD_EVENTS: &str = "INSERT INTO events (run, seq, at, kind, body)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[])";

const DECIDE: &str =
    "UPDATE approvals SET status = decided.status, decided_at = decided.at, decided_by = decided.by,
        comment = nullif(decided.comment, '')
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[])
        AS decided (id, status, at, by, comment) WHERE approvals.id = decided.id";

const WITHDRAW: &str = "UPDATE approvals SET status = (
        SELECT w.status FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (run, node, status, no)
        WHERE w.run = approvals.run AND coalesce(w.node, approvals.node) = approvals.node ORDER BY w.no LIMIT 1)
    WHERE status = 'pending' AND run = ANY($1::text[]) AND EXISTS (
        SELECT FROM unnest($1::text[], $2::text[]) AS w (run, node)
        WHERE w.run = approvals.run AND coalesce(w.node, approvals.node) = approvals.node)";

const ASK: &str = "INSERT INTO approvals (id, run, node, status, approver, prompt, payload, created_at, timeout_at,
        decided_at, decided_by, comment)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[])
    ON CONFLICT (id) DO UPDATE SET no = excluded.no, run = excluded.run, node = excluded.node,
        status = excluded.status, approver = excluded.approver, prompt = excluded.prompt, payload = excluded.payload,
        created_at = excluded.created_at, timeout_at = excluded.timeout_at, decided_at = excluded.decided_at,
        decided_by = excluded.decided_by, comment = excluded.comment";

const HOLD: &str = "INSERT INTO payload_refs (hash, holder) SELECT * FROM unnest($1::text[], $2::text[])
    ON CONFLICT (hash, holder) DO UPDATE SET released_at = NULL";

const REVIVE: &str = "DELETE FROM dead_letters USING unnest($1::text[], $2::text[]) AS over (run, node)
    WHERE dead_letters.run = over.run AND dead_letters.node = over.node";

const BURY: &str = "INSERT INTO dead_letters (id, kind, run, node, seq, reason, at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[])
    ON CONFLICT (id) DO NOTHING";

pub(super) struct Session {
    client: Client,
    lock_runs: Statement,
    find_keys: Statement,
    find_events: Statement,
    add_runs: Statement,
    move_runs: Statement,
    turn_runs: Statement,
    add_events: Statement,
    decide: Statement,
    withdraw: Statement,
    ask: Statement,
    hold: Statement,
    revive: Statement,
    bury: Statement,
}

/// Why something could not be done here.
#[derive(Debug)]
pub(super) enum Failure {
    Postgres(Error),
    Damaged(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Damaged(error)
    }
}

impl Session {
    pub(super) async fn open(target: &Target) -> Result<Self, Failure> {
        let (client, connection) = target.config.connect(target.connector()?).await?;
        tokio::spawn(connection);
        client.batch_execute(SETTINGS).await?;
        let c = &client;
        // Sent one behind the other without waiting between them.
        let (lock_runs, find_keys, find_events, add_runs, move_runs, turn_runs) = futures::try_join!(
            c.prepare(LOCK_RUNS),
            c.prepare(FIND_KEYS),
            c.prepare(FIND_EVENTS),
            c.prepare(ADD_RUNS),
            c.prepare(MOVE_RUNS),
            c.prepare(TURN_RUNS),
        )?;
        let (add_events, decide, withdraw, ask, hold, revive, bury) = futures::try_join!(
            c.prepare(ADD_EVENTS),
            c.prepare(DECIDE),
            c.prepare(WITHDRAW),
            c.prepare(ASK),
            c.prepare(HOLD),
            c.prepare(REVIVE),
            c.prepare(BURY),
        )?;
        Ok(Self {
            client,
            lock_runs,
            find_keys,
            find_events,
            add_runs,
            move_runs,
            turn_runs,
            add_events,
            decide,
            withdraw,
            ask,
            hold,
            revive,
            bury,
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) async fn roll_back(&self) -> Result<(), Error> {
        self.client.batch_execute("ROLLBACK").await
    }

    /// Begins a transaction: locks the runs, and reads what the events are to be compared with.
    pub(super) async fn begin(&self, events: &[&Event], keys: &[&str]) -> Result<Stored, Failure> {
        let mut runs: Vec<RunId> = events.iter().map(|event| event.run).collect();
        runs.sort_unstable();
        runs.dedup();
        let ids: Vec<String> = runs.iter().map(ToString::to_string).collect();
        let keys: Vec<_> = keys.iter().map(|key| text::stored(key)).collect();
        let (id_params, key_params): ([Param<'_>; 1], [Param<'_>; 1]) = ([&ids], [&keys]);
        let (_, locked, taken) = futures::try_join!(
            self.client.batch_execute("BEGIN"),
            self.client.query(&self.lock_runs, &id_params),
            async {
                match keys.is_empty() {
                    true => Ok(Vec::new()),
                    false => self.client.query(&self.find_keys, &key_params).await,
                }
            },
        )?;
        let mut stored = Stored::default();
        for row in &locked {
            stored.runs.insert(parsed(row, "id")?, stored_run(row)?);
        }
        for row in &taken {
            let key = text::read(row.get("idempotency_key"));
            stored.keys.insert(key.into(), parsed(row, "id")?);
        }
        self.read_repeated(events, &mut stored).await?;
        Ok(stored)
    }

    async fn read_repeated(&self, events: &[&Event], stored: &mut Stored) -> Result<(), Failure> {
        let there =
            |event: &&&Event| stored.runs.get(&event.run).is_some_and(|run| event.seq <= run.last_seq);
        let (runs, seqs): (Vec<String>, Vec<i64>) =
            events.iter().filter(there).map(|event| (event.run.to_string(), event.seq.cast_signed())).unzip();
        if runs.is_empty() {
            return Ok(());
        }
        for row in self.client.query(&self.find_events, &[&runs, &seqs]).await? {
            let event = event_of(&row)?;
            stored.events.insert((event.run, event.seq), event);
        }
        Ok(())
    }

    /// Writes a group and commits it. Every statement is sent before the first is answered; after one that fails
    /// Postgres carries out none, the commit included.
    pub(super) async fn commit(&self, group: &Group<'_>) -> Result<(), Error> {
        let (new, old): (Vec<_>, Vec<_>) = group.runs.iter().partition(|(_, run)| run.accepted().is_some());
        let (turned, moved): (Vec<_>, Vec<_>) = old.into_iter().partition(|(_, run)| run.standing.turned);
        futures::try_join!(
            self.add_runs(&new),
            self.move_runs(&moved),
            self.turn_runs(&turned),
            self.add_events(group),
            self.decide(group),
            self.withdraw(group),
            self.ask(group),
            self.hold(group),
            self.revive(group),
            self.bury(group),
            self.client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }
}

fn stored_run(row: &Row) -> Result<StoredRun, StoreError> {
    Ok(StoredRun {
        last_seq: row.get::<_, i64>("last_seq").cast_unsigned(),
        status: parsed(row, "status")?,
        queued: row.get("queued"),
    })
}

pub(super) fn event_of(row: &Row) -> Result<Event, StoreError> {
    let (run, seq) = (parsed(row, "run")?, row.get::<_, i64>("seq").cast_unsigned());
    let at = Timestamp::from_millis(row.get("at"));
    let body: &str = row.get("body");
    let kind = serde_json::from_str(body).map_err(|_| damaged("body", &format!("event {seq} of {run}")))?;
    Ok(Event { run, seq, at, kind })
}

type Runs<'a, 'g> = [(&'a RunId, &'a super::group::Grown<'g>)];

impl Session {
    async fn add_runs(&self, new: &Runs<'_, '_>) -> Result<(), Error> {
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

    async fn move_runs(&self, moved: &Runs<'_, '_>) -> Result<(), Error> {
        if moved.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = moved.iter().map(|(id, _)| id.to_string()).collect();
        let seqs: Vec<_> = moved.iter().map(|(_, run)| run.last_seq().cast_signed()).collect();
        self.client.execute(&self.move_runs, &[&ids, &seqs]).await.map(drop)
    }

    async fn turn_runs(&self, turned: &Runs<'_, '_>) -> Result<(), Error> {
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

    async fn add_events(&self, group: &Group<'_>) -> Result<(), Error> {
        let mut runs = Vec::new();
        let (mut seqs, mut moments, mut kinds, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (id, run) in &group.runs {
            let id = id.to_string();
            for written in &run.new {
                runs.push(id.clone());
                seqs.push(written.event.seq.cast_signed());
                moments.push(written.event.at.as_millis());
                kinds.push(written.event.kind.name());
                bodies.push(written.body.as_str());
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        self.client.execute(&self.add_events, &[&runs, &seqs, &moments, &kinds, &bodies]).await.map(drop)
    }

    async fn decide(&self, group: &Group<'_>) -> Result<(), Error> {
        let decided = &group.approvals.decided;
        if decided.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = decided.keys().map(|id| text::stored(id.as_str())).collect();
        let statuses: Vec<_> = decided.values().map(|d| approval_word(d.status)).collect();
        let moments: Vec<_> = decided.values().map(|d| d.at.as_millis()).collect();
        let by: Vec<_> = decided.values().map(|d| text::stored(&d.by)).collect();
        let comments: Vec<_> = decided.values().map(|d| text::stored(&d.comment)).collect();
        self.client.execute(&self.decide, &[&ids, &statuses, &moments, &by, &comments]).await.map(drop)
    }

    async fn withdraw(&self, group: &Group<'_>) -> Result<(), Error> {
        let withdrawn = &group.approvals.withdrawn;
        if withdrawn.is_empty() {
            return Ok(());
        }
        let runs: Vec<_> = withdrawn.iter().map(|w| w.run.to_string()).collect();
        let nodes: Vec<_> = withdrawn.iter().map(|w| w.node.as_deref().map(text::stored)).collect();
        let statuses: Vec<_> = withdrawn.iter().map(|w| approval_word(w.status)).collect();
        self.client.execute(&self.withdraw, &[&runs, &nodes, &statuses]).await.map(drop)
    }

    async fn ask(&self, group: &Group<'_>) -> Result<(), Error> {
        let asked = &group.approvals.asked;
        if asked.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = asked.iter().map(|a| text::stored(a.request.approval.as_str())).collect();
        let runs: Vec<_> = asked.iter().map(|a| a.run.to_string()).collect();
        let nodes: Vec<_> = asked.iter().map(|a| text::stored(&a.node)).collect();
        let statuses: Vec<_> = asked.iter().map(|a| approval_word(a.status)).collect();
        let approvers: Vec<_> =
            asked.iter().map(|a| a.request.approver.as_deref().map(text::stored)).collect();
        let prompts: Vec<_> = asked.iter().map(|a| a.request.prompt.as_deref().map(text::stored)).collect();
        let payloads: Vec<_> = asked.iter().map(|a| json(&a.request.payload)).collect();
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

    async fn revive(&self, group: &Group<'_>) -> Result<(), Error> {
        if group.dead.revived.is_empty() {
            return Ok(());
        }
        let (runs, nodes): (Vec<_>, Vec<_>) =
            group.dead.revived.iter().map(|(run, node)| (run.to_string(), text::stored(node))).unzip();
        self.client.execute(&self.revive, &[&runs, &nodes]).await.map(drop)
    }

    async fn bury(&self, group: &Group<'_>) -> Result<(), Error> {
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

    async fn hold(&self, group: &Group<'_>) -> Result<(), Error> {
        if group.payloads.is_empty() {
            return Ok(());
        }
        let (hashes, holders): (Vec<_>, Vec<_>) =
            group.payloads.iter().map(|(hash, run)| (hash.to_string(), run.to_string())).unzip();
        self.client.execute(&self.hold, &[&hashes, &holders]).await.map(drop)
    }
}

fn ends<'a, 'g: 'a>(
    runs: impl Iterator<Item = &'a super::group::Grown<'g>>,
) -> (Vec<Option<i64>>, Vec<Option<String>>) {
    runs.map(|run| match &run.standing.end {
        Some(end) => (millis(end.at), end.error.as_ref().map(json)),
        None => (None, None),
    })
    .unzip()
}

/// What we write has string keys and finite numbers only, so it always serialises.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
