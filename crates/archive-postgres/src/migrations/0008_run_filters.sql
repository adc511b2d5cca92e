-- What runs are found by: their labels, what started them, and why they failed.
ALTER TABLE runs ADD COLUMN parent_node text COLLATE "C";
ALTER TABLE runs ADD COLUMN schedule text COLLATE "C";
ALTER TABLE runs ADD COLUMN error_node text COLLATE "C";
ALTER TABLE runs ADD COLUMN error_code text COLLATE "C";

CREATE TABLE run_labels (
    run    text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    value  text COLLATE "C" NOT NULL,
    PRIMARY KEY (run, key)
);

CREATE INDEX run_labels_by_value ON run_labels (key, value, run);

-- Postgres reads no JSON with a NUL in it.
UPDATE runs SET error_node = error::json ->> 'node', error_code = error::json ->> 'code'
WHERE error IS NOT NULL AND position('\u0000' in error) = 0;

UPDATE runs SET parent_node = body::json -> 'run_accepted' -> 'parent' ->> 'node'
FROM events
WHERE events.run = runs.id AND events.seq = 1 AND runs.parent IS NOT NULL AND position('\u0000' in body) = 0;

-- A start of a schedule has the key `schedule/NAME/TICK`.
UPDATE runs SET schedule = split_part(idempotency_key, '/', 2)
WHERE idempotency_key LIKE 'schedule/%/%'
  AND split_part(idempotency_key, '/', 2) IN (SELECT name FROM schedules);

-- An id says when a run was created, so an index that ends with it answers a time range in order.
DROP INDEX runs_by_parent;
CREATE INDEX runs_by_parent ON runs (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_schedule ON runs (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX runs_by_error_code ON runs (error_code, id) WHERE error_code IS NOT NULL;
CREATE INDEX runs_by_error_node ON runs (error_node, id) WHERE error_node IS NOT NULL;
CREATE INDEX runs_with_error ON runs (id) WHERE error IS NOT NULL;
