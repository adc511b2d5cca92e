-- What became of the newest ticks of each schedule.
CREATE TABLE schedule_starts (
    schedule   text COLLATE "C" NOT NULL,
    tick       bigint NOT NULL,
    at         bigint NOT NULL,  -- of the newest try
    tries      integer NOT NULL,
    started_by text,             -- NULL: the schedule itself
    outcome    text NOT NULL,    -- started, skipped, failed
    run        text,
    error      text,
    PRIMARY KEY (schedule, tick)
);
