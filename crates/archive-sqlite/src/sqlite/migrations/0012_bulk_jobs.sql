-- Runs that were deleted, and by whom. Nothing of what they were about is kept.
CREATE TABLE tombstones (
    run         TEXT PRIMARY KEY,
    workflow    TEXT NOT NULL,
    status      TEXT NOT NULL,
    deleted_at  INTEGER NOT NULL,
    deleted_by  TEXT NOT NULL,
    reason      TEXT NOT NULL,
    children    INTEGER NOT NULL -- runs that went with it
) WITHOUT ROWID;

CREATE INDEX tombstones_by_time ON tombstones (deleted_at);

-- One action on every run that a filter finds, and what it came to, run by run.
CREATE TABLE bulk_jobs (
    no          INTEGER PRIMARY KEY, -- order of creation
    id          TEXT NOT NULL UNIQUE,
    action      TEXT NOT NULL, -- JSON
    filter      TEXT NOT NULL,
    started_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    status      TEXT NOT NULL, -- running, done, stopped
    ended_at    INTEGER,
    cursor      TEXT -- the last run that was worked on
);

CREATE INDEX bulk_jobs_open ON bulk_jobs (no) WHERE status = 'running';

CREATE TABLE bulk_results (
    job      TEXT NOT NULL,
    run      TEXT NOT NULL,
    outcome  TEXT NOT NULL, -- done, skipped, failed
    detail   TEXT,
    PRIMARY KEY (job, run)
) WITHOUT ROWID;
