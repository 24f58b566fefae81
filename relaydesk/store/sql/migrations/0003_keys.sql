-- Named keys. The secret itself is nowhere: only its SHA-256. spec is the JSON of core/access/key.py's KeySpec.
CREATE TABLE keys (
    name TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    spec BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What a key used on a day (days since 1970, UTC). key is a key's id: it outlives the key's name.
CREATE TABLE usage (
    key TEXT NOT NULL,
    day INTEGER NOT NULL,
    requests INTEGER NOT NULL CHECK (requests >= 0),
    prompt INTEGER NOT NULL CHECK (prompt >= 0),
    completion INTEGER NOT NULL CHECK (completion >= 0),
    PRIMARY KEY (key, day)
) STRICT, WITHOUT ROWID;

-- Up to how many tokens a key may have gone on a day, known before it goes there: what counts after a power
-- cut. boot names the system's start in which it was written.
CREATE TABLE usage_ahead (
    key TEXT NOT NULL,
    day INTEGER NOT NULL,
    tokens INTEGER NOT NULL CHECK (tokens >= 0),
    boot TEXT NOT NULL,
    PRIMARY KEY (key, day)
) STRICT, WITHOUT ROWID;
