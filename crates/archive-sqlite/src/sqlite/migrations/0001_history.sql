-- The first schema. Ids and bodies are text that people can read with the sqlite3 shell; times are milliseconds
-- since the Unix epoch. `runs` and `approvals` are projections of `events` (see project.rs).

CREATE TABLE runs (
    no                INTEGER PRIMARY KEY, -- short, because every event carries it
    id                TEXT NOT NULL UNIQUE,
    workflow          TEXT NOT NULL,
    workflow_version  INTEGER,
    definition        TEXT NOT NULL,
    status            TEXT NOT NULL,
    queued            INTEGER NOT NULL, -- 1: waits for its concurrency key, also while it is paused
    accepted_at       INTEGER NOT NULL,
    ended_at          INTEGER,
    parent            TEXT,
    idempotency_key   TEXT,
    idempotency_body  TEXT,
    error             TEXT -- JSON
);

-- One index for two questions: what has not ended, and the runs of one status, newest first.
CREATE INDEX runs_by_status ON runs (status, id);
CREATE INDEX runs_by_workflow ON runs (workflow, id);
CREATE UNIQUE INDEX runs_by_idempotency_key ON runs (idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Rows lie in the order in which they were appended, so a commit touches the last pages only; the slim index
-- finds those of a run.
CREATE TABLE events (
    no      INTEGER PRIMARY KEY,
    run_no  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL -- JSON
);

CREATE UNIQUE INDEX events_by_run ON events (run_no, seq);

-- For people: SELECT * FROM history WHERE run = 'run_…';
CREATE VIEW history AS
SELECT runs.id AS run,
       events.seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', events.at / 1000.0, 'unixepoch') AS at,
       events.kind,
       events.body
FROM events
JOIN runs ON runs.no = events.run_no
ORDER BY events.run_no, events.seq;

CREATE TABLE definitions (
    hash  TEXT PRIMARY KEY,
    body  TEXT NOT NULL -- canonical JSON
) WITHOUT ROWID;

CREATE TABLE workflows (
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    definition  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) WITHOUT ROWID;

CREATE TABLE approvals (
    no          INTEGER PRIMARY KEY, -- order of request
    id          TEXT NOT NULL UNIQUE,
    run         TEXT NOT NULL,
    node        TEXT NOT NULL,
    status      TEXT NOT NULL,
    approver    TEXT,
    prompt      TEXT,
    payload     TEXT NOT NULL, -- JSON
    created_at  INTEGER NOT NULL,
    timeout_at  INTEGER,
    decided_at  INTEGER,
    decided_by  TEXT,
    comment     TEXT
);

CREATE INDEX approvals_by_run ON approvals (run, node);
CREATE INDEX approvals_by_status ON approvals (status);

CREATE TABLE cache (
    scope       TEXT NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL, -- JSON
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

CREATE INDEX cache_by_expiry ON cache (expires_at);
