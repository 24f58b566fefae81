-- The newest good document of each pinned directory, by its key's address: what is used after a restart until
-- it expires, and below which no version counts. issued_at is in seconds since 1970.
CREATE TABLE directories (
    key TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    issued_at INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    document BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The owner that was known first for each operator's id: a second one with that id is refused.
CREATE TABLE operators (
    operator INTEGER PRIMARY KEY,
    owner TEXT NOT NULL
) STRICT;

-- What was decided by hand about an owner, whatever directories say.
CREATE TABLE operator_choices (
    owner TEXT PRIMARY KEY,
    choice TEXT NOT NULL CHECK (choice IN ('trusted', 'blocked')),
    at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest record seen of each node: an older one never counts again.
CREATE TABLE node_records (
    operator INTEGER NOT NULL,
    node INTEGER NOT NULL,
    certified_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    PRIMARY KEY (operator, node)
) STRICT, WITHOUT ROWID;

-- The record that this node published last.
CREATE TABLE own_record (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    record BLOB NOT NULL
) STRICT;
