-- What became of the newest ticks of each schedule.
CREATE TABLE schedule_starts (
    schedule   TEXT NOT NULL,
    tick       INTEGER NOT NULL,
    at         INTEGER NOT NULL, -- of the newest try
    tries      INTEGER NOT NULL,
    started_by TEXT,             -- NULL: the schedule itself
    outcome    TEXT NOT NULL,    -- started, skipped, failed
    run        TEXT,
    error      TEXT,
    PRIMARY KEY (schedule, tick)
) WITHOUT ROWID;
