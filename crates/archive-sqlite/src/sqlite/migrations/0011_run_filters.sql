-- What runs are found by: their labels, what started them, and why they failed.
ALTER TABLE runs ADD COLUMN parent_node TEXT;
ALTER TABLE runs ADD COLUMN schedule TEXT;
ALTER TABLE runs ADD COLUMN error_node TEXT;
ALTER TABLE runs ADD COLUMN error_code TEXT;

CREATE TABLE run_labels (
    run    TEXT NOT NULL,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;

CREATE INDEX run_labels_by_value ON run_labels (key, value, run);

UPDATE runs SET error_node = error ->> 'node', error_code = error ->> 'code'
WHERE error IS NOT NULL AND json_valid(error);

UPDATE runs SET parent_node = (
    SELECT body -> 'run_accepted' -> 'parent' ->> 'node' FROM events
    WHERE run_no = runs.no AND seq = 1 AND json_valid(body))
WHERE parent IS NOT NULL;

-- A start of a schedule has the key `schedule/NAME/TICK`.
UPDATE runs SET schedule = substr(idempotency_key, 10, instr(substr(idempotency_key, 10), '/') - 1)
WHERE idempotency_key LIKE 'schedule/%/%'
  AND substr(idempotency_key, 10, instr(substr(idempotency_key, 10), '/') - 1) IN (SELECT name FROM schedules);

-- An id says when a run was created, so an index that ends with it answers a time range in order.
DROP INDEX runs_by_parent;
CREATE INDEX runs_by_parent ON runs (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_schedule ON runs (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX runs_by_error_code ON runs (error_code, id) WHERE error_code IS NOT NULL;
CREATE INDEX runs_by_error_node ON runs (error_node, id) WHERE error_node IS NOT NULL;
CREATE INDEX runs_with_error ON runs (id) WHERE error IS NOT NULL;
