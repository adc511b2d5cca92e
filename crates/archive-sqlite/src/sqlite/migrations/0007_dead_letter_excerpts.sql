-- How an entry of the outbox begins that could not be archived: letters of the kind `outbox_entry`.
ALTER TABLE dead_letters ADD COLUMN excerpt TEXT;
