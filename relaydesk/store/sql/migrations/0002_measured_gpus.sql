-- How many devices shared a measured load: without it a restart took GPU figures for the host's memory.
ALTER TABLE measured ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0;
