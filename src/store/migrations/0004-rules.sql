-- What an operator lays down about calls: limits, names of models, what is to be known of a channel, and what a key
-- may use.

-- resource × window × scope; what is null does not matter. `per` is a comma list of key, account, model: each of these
-- has a limit of its own. No id is ever used again, so that nothing is taken for what another rule has counted.
CREATE TABLE limit_rule (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  resource   TEXT NOT NULL CHECK (resource IN ('requests', 'tokens', 'concurrency')),
  span       TEXT CHECK (span IN ('minute', 'day')),
  amount     INTEGER NOT NULL CHECK (amount > 0),
  key_id     INTEGER,
  account_id INTEGER,
  tier       TEXT REFERENCES tier,
  model      TEXT,
  per        TEXT NOT NULL CHECK (per IN
    ('', 'key', 'account', 'model', 'key,account', 'key,model', 'account,model', 'key,account,model')),
  author     TEXT NOT NULL,
  changed_ms INTEGER NOT NULL,
  CHECK ((resource = 'concurrency') = (span IS NULL))
) STRICT;

-- What a day's limits had already given when it was last noted, so that a start does not give it again: until when it
-- takes to be paid.
CREATE TABLE limit_debt (
  name     TEXT PRIMARY KEY,
  paid_ms  INTEGER NOT NULL,
  noted_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A name that callers may use. `members` is JSON: [{model, priority, weight}].
CREATE TABLE model_route (
  name       TEXT PRIMARY KEY,
  policy     TEXT NOT NULL,
  members    TEXT NOT NULL,
  author     TEXT NOT NULL,
  changed_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `proxy` is sealed, for it may hold a password. `tags` is a comma list.
CREATE TABLE channel_rule (
  channel     TEXT PRIMARY KEY,
  disabled    INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
  weight      INTEGER NOT NULL DEFAULT 1 CHECK (weight >= 0),
  priority    INTEGER NOT NULL DEFAULT 0,
  rpm         INTEGER CHECK (rpm > 0),
  tpm         INTEGER CHECK (tpm > 0),
  concurrency INTEGER CHECK (concurrency > 0),
  proxy       BLOB,
  tags        TEXT NOT NULL DEFAULT '',
  author      TEXT NOT NULL,
  changed_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Comma lists of patterns of model names, and of tags that a channel must have. Null: whichever.
ALTER TABLE api_key ADD COLUMN allows TEXT;
ALTER TABLE api_key ADD COLUMN denies TEXT;
ALTER TABLE api_key ADD COLUMN requires TEXT;
-- It may be told of channels and of what goes upstream.
ALTER TABLE api_key ADD COLUMN explains INTEGER NOT NULL DEFAULT 0 CHECK (explains IN (0, 1));

-- The name that the caller used, where it is not the model's own; and JSON: why the call went where it went.
ALTER TABLE record ADD COLUMN asked TEXT;
ALTER TABLE record ADD COLUMN why TEXT;
