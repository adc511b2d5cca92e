//! The connection of the appending task.

mod sql;
mod write;

use switchyard_core::run::Event;
use switchyard_core::{RunId, Timestamp};
use switchyard_store::projection::RunRow;
use switchyard_store::{StoreError, verify_event};
use tokio_postgres::{Client, Error, Row, Statement};

use super::group::{Group, Stored};
use super::rows::{damaged, parsed};
use crate::pool::Param;
use crate::{Target, text};

pub(super) struct Session {
    client: Client,
    lock_runs: Statement,
    find_keys: Statement,
    find_events: Statement,
    add_runs: Statement,
    add_labels: Statement,
    move_runs: Statement,
    turn_runs: Statement,
    add_events: Statement,
    add_operations: Statement,
    decide_approvals: Statement,
    close_approvals: Statement,
    request_approvals: Statement,
    hold_payloads: Statement,
    revive_dead_letters: Statement,
    bury_dead_letters: Statement,
    mark: Statement,
}

/// Why a step of an append failed.
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
        client.batch_execute(sql::SETTINGS).await?;
        let c = &client;
        // The statements are prepared in a pipeline.
        let (lock_runs, find_keys, find_events, add_runs, move_runs, turn_runs) = futures::try_join!(
            c.prepare(sql::LOCK_RUNS),
            c.prepare(sql::FIND_KEYS),
            c.prepare(sql::FIND_EVENTS),
            c.prepare(sql::ADD_RUNS),
            c.prepare(sql::MOVE_RUNS),
            c.prepare(sql::TURN_RUNS),
        )?;
        let (add_events, add_operations, decide_approvals, close_approvals, request_approvals) = futures::try_join!(
            c.prepare(sql::ADD_EVENTS),
            c.prepare(sql::ADD_OPERATIONS),
            c.prepare(sql::DECIDE_APPROVALS),
            c.prepare(sql::CLOSE_APPROVALS),
            c.prepare(sql::REQUEST_APPROVALS),
        )?;
        let (hold_payloads, revive_dead_letters, bury_dead_letters, mark, add_labels) = futures::try_join!(
            c.prepare(sql::HOLD_PAYLOADS),
            c.prepare(sql::REVIVE_DEAD_LETTERS),
            c.prepare(sql::BURY_DEAD_LETTERS),
            c.prepare(sql::MARK),
            c.prepare(sql::ADD_LABELS),
        )?;
        Ok(Self {
            client,
            lock_runs,
            find_keys,
            find_events,
            add_runs,
            add_labels,
            move_runs,
            turn_runs,
            add_events,
            add_operations,
            decide_approvals,
            close_approvals,
            request_approvals,
            hold_payloads,
            revive_dead_letters,
            bury_dead_letters,
            mark,
        })
    }

    /// Checks that the server answers and takes writes.
    pub(super) async fn ask_nothing(&self) -> Result<(), Failure> {
        let row = self.client.query_one("SELECT pg_is_in_recovery()", &[]).await?;
        if row.get(0) {
            return Err(StoreError::unavailable("the server is a standby and takes no writes").into());
        }
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) async fn roll_back(&self) -> Result<(), Error> {
        self.client.batch_execute("ROLLBACK").await
    }

    /// Begins a transaction: locks the runs, and reads the rows that the events are compared with.
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

    /// Writes a group and commits it, with the archive's position if `mark` is set. Every statement is sent before
    /// the first is answered; after a failed statement Postgres executes none of the others, including the commit.
    pub(super) async fn commit(&self, group: &Group<'_>, mark: bool) -> Result<(), Error> {
        futures::try_join!(
            self.add_runs(group),
            self.add_labels(group),
            self.move_runs(group),
            self.turn_runs(group),
            self.add_events(group),
            self.add_operations(group),
            self.decide_approvals(group),
            self.close_approvals(group),
            self.request_approvals(group),
            self.hold_payloads(group),
            self.revive_dead_letters(group),
            self.bury_dead_letters(group),
            self.mark(group, mark),
            self.client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }
}

fn stored_run(row: &Row) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        last_seq: row.get::<_, i64>("last_seq").cast_unsigned(),
        status: parsed(row, "status")?,
        queued: row.get("queued"),
    })
}

pub(super) fn event_of(row: &Row) -> Result<Event, StoreError> {
    let (run, seq) = (parsed(row, "run")?, row.get::<_, i64>("seq").cast_unsigned());
    let at = Timestamp::from_millis(row.get("at"));
    let body: &str = row.get("body");
    verify_event(row.get("checksum"), run, seq, at, body.as_bytes())?;
    let kind = serde_json::from_str(body).map_err(|_| damaged("body", &format!("event {seq} of {run}")))?;
    Ok(Event { run, seq, at, kind })
}
