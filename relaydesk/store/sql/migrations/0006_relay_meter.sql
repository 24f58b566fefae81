-- Bytes carried for others, by month (year * 12 + month - 1, UTC). Neither who nor where to.
CREATE TABLE relay_meter (
    month INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
