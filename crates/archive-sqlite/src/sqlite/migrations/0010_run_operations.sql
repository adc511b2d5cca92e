-- Commands that took effect on a run, by the id that their caller gave them: sent again, they change nothing. They
-- follow from events; the events of earlier versions carry none.
CREATE TABLE run_operations (
    run_no   INTEGER NOT NULL,
    id       TEXT NOT NULL,
    seq      INTEGER NOT NULL, -- of the event
    command  TEXT NOT NULL,    -- hash of what was asked for
    PRIMARY KEY (run_no, id)
) WITHOUT ROWID;
