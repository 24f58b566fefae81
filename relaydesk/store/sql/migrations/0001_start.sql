-- Registered models. spec is the JSON of core/pool/model.py's ModelSpec.
CREATE TABLE models (
    name TEXT PRIMARY KEY,
    spec BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Every name a client can use, a model's own and its aliases: unique over all of them.
CREATE TABLE model_names (
    name TEXT PRIMARY KEY,
    model TEXT NOT NULL REFERENCES models (name) ON DELETE CASCADE ON UPDATE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX model_names_model ON model_names (model);

-- What a loaded model really used, in bytes. options names the load options that change it.
CREATE TABLE measured (
    model TEXT NOT NULL REFERENCES models (name) ON DELETE CASCADE ON UPDATE CASCADE,
    options TEXT NOT NULL,
    weights_bytes INTEGER NOT NULL CHECK (weights_bytes >= 0),
    kv_bytes INTEGER NOT NULL CHECK (kv_bytes >= 0),
    compute_bytes INTEGER NOT NULL CHECK (compute_bytes >= 0),
    rss_bytes INTEGER NOT NULL CHECK (rss_bytes >= 0),
    measured_ms INTEGER NOT NULL,
    PRIMARY KEY (model, options)
) STRICT, WITHOUT ROWID;

-- Small facts of the node: its id, the names its CA was made for.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
