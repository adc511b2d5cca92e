-- CRC-32 of run, seq, at and body: `event_checksum` in crates/store. NULL: written before there were any.
ALTER TABLE events ADD COLUMN checksum INTEGER;
