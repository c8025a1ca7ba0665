-- Accounts, keys, holds and records. Money is nano-USD, times are milliseconds since 1970, ids are time-ordered.

CREATE TABLE setting (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tier (
  name            TEXT PRIMARY KEY,
  qpm             INTEGER NOT NULL CHECK (qpm > 0),
  price_per_mille INTEGER NOT NULL CHECK (price_per_mille >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO tier VALUES ('free', 20, 1000), ('standard', 300, 1000), ('pro', 3000, 1000);

CREATE TABLE account (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  balance    INTEGER NOT NULL,
  held       INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  created_ms INTEGER NOT NULL,
  CHECK (balance - held >= 0)
) STRICT;

CREATE TABLE api_key (
  id         INTEGER PRIMARY KEY,
  digest     BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  suffix     TEXT NOT NULL,
  name       TEXT NOT NULL,
  account_id INTEGER NOT NULL REFERENCES account,
  tier       TEXT NOT NULL REFERENCES tier,
  qpm        INTEGER CHECK (qpm > 0),
  created_ms INTEGER NOT NULL,
  revoked_ms INTEGER
) STRICT;

-- Open holds only: a settled call is a record.
CREATE TABLE hold (
  call_id    INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES account,
  amount     INTEGER NOT NULL CHECK (amount >= 0)
) STRICT;

CREATE TABLE record (
  call_id           INTEGER PRIMARY KEY,
  key_id            INTEGER NOT NULL,
  account_id        INTEGER NOT NULL,
  provider          TEXT,
  model             TEXT,
  channel           TEXT,
  status            INTEGER NOT NULL,
  outcome           TEXT NOT NULL,
  usage_source      TEXT NOT NULL,
  input_tokens      INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  output_tokens     INTEGER NOT NULL,
  cost              INTEGER NOT NULL CHECK (cost >= 0),
  attempts          INTEGER NOT NULL,
  streamed          INTEGER NOT NULL,
  duration_ms       INTEGER NOT NULL
) STRICT;
