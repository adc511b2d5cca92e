-- Changes that belong to no run, under the ids that their callers gave them: asked again within a day, each answers what it
-- came to the first time.
CREATE TABLE operations (
    id           TEXT PRIMARY KEY,
    kind         TEXT NOT NULL, -- what was asked for, such as put_schedule
    fingerprint  TEXT NOT NULL, -- hash of the request
    outcome      TEXT NOT NULL, -- JSON
    at           INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX operations_by_time ON operations (at);
