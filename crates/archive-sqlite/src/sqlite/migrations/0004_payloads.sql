-- Who holds on to which payload of the CAS: a run (`run_…`), a schedule (`schedule/NAME`), or the cache (`cache`).
CREATE TABLE payload_refs (
    hash         TEXT NOT NULL,
    holder       TEXT NOT NULL,
    released_at  INTEGER, -- NULL: still held
    PRIMARY KEY (hash, holder)
) WITHOUT ROWID;

CREATE INDEX payload_refs_by_holder ON payload_refs (holder);
CREATE INDEX payload_refs_released ON payload_refs (released_at) WHERE released_at IS NOT NULL;

-- For what was archived before. A payload that only looks like a reference is kept longer than it has to be.
INSERT OR IGNORE INTO payload_refs (hash, holder)
SELECT tree.value ->> 'hash', runs.id
FROM events
JOIN runs ON runs.no = events.run_no
JOIN json_tree(events.body) AS tree
WHERE events.body LIKE '%"cas":{%' AND json_valid(events.body)
  AND tree.key = 'cas' AND tree.type = 'object' AND tree.value ->> 'hash' LIKE 'sha256:%';

INSERT OR IGNORE INTO payload_refs (hash, holder)
SELECT spec -> 'input' -> 'cas' ->> 'hash', 'schedule/' || name
FROM schedules
WHERE spec -> 'input' -> 'cas' ->> 'hash' IS NOT NULL;

INSERT OR IGNORE INTO payload_refs (hash, holder, released_at)
SELECT value -> 'cas' ->> 'hash', 'cache', max(expires_at)
FROM cache
WHERE value -> 'cas' ->> 'hash' IS NOT NULL
GROUP BY 1;

-- For removing what is no longer kept.
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_end ON runs (ended_at, id) WHERE ended_at IS NOT NULL AND parent IS NULL;
