-- Workflows that start by themselves. `next_at` is the next tick; a start is recorded by moving it on.
CREATE TABLE schedules (
    name      TEXT PRIMARY KEY,
    spec      TEXT NOT NULL, -- JSON
    next_at   INTEGER,       -- NULL: it never comes again
    last_run  TEXT
) WITHOUT ROWID;
