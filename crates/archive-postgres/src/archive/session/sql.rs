//! The statements of appends. Each handles any number of rows.

/// The statements look up a few rows of many by key. A plan made while a table is small would scan the whole table,
/// and Postgres would keep that plan until the statistics are renewed. The time-outs limit how long rows stay locked:
/// a process that hangs must not block the others.
pub(super) const SETTINGS: &str =
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
    SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// Locks rows in the order of ids, so that two processes never deadlock.
pub(super) const LOCK_RUNS: &str = "SELECT id, last_seq, status, queued FROM runs WHERE id = ANY($1::text[])
    ORDER BY id FOR NO KEY UPDATE";

pub(super) const FIND_KEYS: &str =
    "SELECT id, idempotency_key FROM runs WHERE idempotency_key = ANY($1::text[])";

pub(super) const FIND_EVENTS: &str = "SELECT run, seq, at, body, checksum FROM events
    JOIN unnest($1::text[], $2::bigint[]) AS wanted (run, seq) USING (run, seq)";

pub(super) const ADD_RUNS: &str = "INSERT INTO runs (id, workflow, workflow_version, definition, status, queued, accepted_at,
        parent, idempotency_key, idempotency_body, ended_at, error, last_seq, parent_node, schedule, error_node, error_code)
    SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::boolean[], $7::bigint[],
        $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[], $13::bigint[], $14::text[], $15::text[],
        $16::text[], $17::text[])";

pub(super) const ADD_LABELS: &str = "INSERT INTO run_labels (run, key, value)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[])";

pub(super) const MOVE_RUNS: &str = "UPDATE runs SET last_seq = moved.last_seq
    FROM unnest($1::text[], $2::bigint[]) AS moved (id, last_seq) WHERE runs.id = moved.id";

pub(super) const TURN_RUNS: &str =
    "UPDATE runs SET last_seq = turned.last_seq, status = turned.status, queued = turned.queued,
        ended_at = CASE WHEN turned.has_end THEN turned.ended_at ELSE runs.ended_at END,
        error = CASE WHEN turned.has_end THEN turned.error ELSE runs.error END,
        error_node = CASE WHEN turned.has_end THEN turned.error_node ELSE runs.error_node END,
        error_code = CASE WHEN turned.has_end THEN turned.error_code ELSE runs.error_code END
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::boolean[], $5::boolean[], $6::bigint[], $7::text[],
        $8::text[], $9::text[])
        AS turned (id, last_seq, status, queued, has_end, ended_at, error, error_node, error_code)
    WHERE runs.id = turned.id";

pub(super) const ADD_EVENTS: &str = "INSERT INTO events (run, seq, at, kind, body, checksum)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[])";

pub(super) const ADD_OPERATIONS: &str = "INSERT INTO run_operations (run, id, seq, command)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) ON CONFLICT DO NOTHING";

pub(super) const DECIDE_APPROVALS: &str =
    "UPDATE approvals SET status = decided.status, decided_at = decided.at, decided_by = decided.by,
        comment = decided.comment
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[])
        AS decided (id, status, at, by, comment) WHERE approvals.id = decided.id";

pub(super) const CLOSE_APPROVALS: &str = "UPDATE approvals SET status = (
        SELECT w.status FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (run, node, status, no)
        WHERE w.run = approvals.run AND coalesce(w.node, approvals.node) = approvals.node ORDER BY w.no LIMIT 1)
    WHERE status = 'pending' AND run = ANY($1::text[]) AND EXISTS (
        SELECT FROM unnest($1::text[], $2::text[]) AS w (run, node)
        WHERE w.run = approvals.run AND coalesce(w.node, approvals.node) = approvals.node)";

pub(super) const REQUEST_APPROVALS: &str = "INSERT INTO approvals (id, run, node, status, approver, prompt, payload, created_at, timeout_at,
        decided_at, decided_by, comment)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[])
    ON CONFLICT (id) DO UPDATE SET no = excluded.no, run = excluded.run, node = excluded.node,
        status = excluded.status, approver = excluded.approver, prompt = excluded.prompt, payload = excluded.payload,
        created_at = excluded.created_at, timeout_at = excluded.timeout_at, decided_at = excluded.decided_at,
        decided_by = excluded.decided_by, comment = excluded.comment";

pub(super) const HOLD_PAYLOADS: &str =
    "INSERT INTO payload_refs (hash, holder) SELECT * FROM unnest($1::text[], $2::text[])
    ON CONFLICT (hash, holder) DO UPDATE SET released_at = NULL";

pub(super) const REVIVE_DEAD_LETTERS: &str =
    "DELETE FROM dead_letters USING unnest($1::text[], $2::text[]) AS over (run, node)
    WHERE dead_letters.run = over.run AND dead_letters.node = over.node";

pub(super) const BURY_DEAD_LETTERS: &str = "INSERT INTO dead_letters (id, kind, run, node, seq, reason, at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[])
    ON CONFLICT (id) DO NOTHING";

/// Skipped while another process has the row locked: no transaction waits for a row that every process changes.
pub(super) const MARK: &str = "UPDATE archive SET position = greatest(position + 1, $1::bigint)
    WHERE no = (SELECT no FROM archive WHERE no = 1 FOR UPDATE SKIP LOCKED)";
