-- Commands that took effect on a run, by the id that their caller gave them: sent again, they change nothing. They
-- follow from events; the events of earlier versions carry none.
CREATE TABLE run_operations (
    run      text COLLATE "C" NOT NULL,
    id       text COLLATE "C" NOT NULL,
    seq      bigint NOT NULL, -- of the event
    command  text NOT NULL,   -- hash of what was asked for
    PRIMARY KEY (run, id)
);
