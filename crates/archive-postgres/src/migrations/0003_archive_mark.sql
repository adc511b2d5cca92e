-- Which archive this is, and how far it has come: one row.
CREATE TABLE archive (
    no        integer PRIMARY KEY CHECK (no = 1),
    id        text COLLATE "C" NOT NULL,
    position  bigint NOT NULL -- the moment of a recent event; never falls
);

INSERT INTO archive (no, id, position) VALUES (1, 'arc_' || replace(gen_random_uuid()::text, '-', ''), 0);
