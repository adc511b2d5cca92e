-- What could not be done, and waits for a person: nodes that were given up (they follow from events), and signals of
-- plain workers that make no sense.
CREATE TABLE dead_letters (
    no      INTEGER PRIMARY KEY, -- order of burial
    id      TEXT NOT NULL UNIQUE,
    kind    TEXT NOT NULL,       -- task, signal
    run     TEXT,
    node    TEXT,
    seq     INTEGER,             -- of the event
    reason  TEXT NOT NULL,
    signal  TEXT,                -- as it came
    at      INTEGER NOT NULL
);

CREATE INDEX dead_letters_by_run ON dead_letters (run) WHERE run IS NOT NULL;

INSERT INTO dead_letters (id, kind, run, node, seq, reason, at)
SELECT 'dead_' || substr(runs.id, 5) || '_' || events.seq, 'task', runs.id,
       json_extract(body, '$.node_failed.node'), events.seq, json_extract(body, '$.node_failed.error.message'), events.at
FROM events JOIN runs ON runs.no = events.run_no
WHERE events.kind = 'node_failed' AND json_valid(body)
  AND json_extract(body, '$.node_failed.error.code') = 'poisoned'
  AND NOT EXISTS (SELECT 1 FROM events AS later
                  WHERE later.run_no = events.run_no AND later.seq > events.seq AND later.kind = 'run_retried')
ORDER BY events.no;
