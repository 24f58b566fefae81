-- What a key spent at the relay network on a day, in microunits: set aside when a ticket is opened, corrected when
-- its exchange has ended, so that a line of its own may be below 0 before it is added.
ALTER TABLE usage ADD COLUMN credit INTEGER NOT NULL DEFAULT 0;
