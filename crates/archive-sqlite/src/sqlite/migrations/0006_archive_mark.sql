-- Which archive this is, and how far it has come: one row.
CREATE TABLE archive (
    no        INTEGER PRIMARY KEY CHECK (no = 1),
    id        TEXT NOT NULL,
    position  INTEGER NOT NULL -- the moment of a recent event; never falls
);

INSERT INTO archive (no, id, position) VALUES (1, 'arc_' || lower(hex(randomblob(16))), 0);
