-- Changes that belong to no run, under the ids that their callers gave them: asked again within a day, each answers what it
-- came to the first time.
CREATE TABLE operations (
    id           text COLLATE "C" PRIMARY KEY,
    kind         text NOT NULL, -- what was asked for, such as put_schedule
    fingerprint  text NOT NULL, -- hash of the request
    outcome      text NOT NULL, -- JSON
    at           bigint NOT NULL
);

CREATE INDEX operations_by_time ON operations (at);
