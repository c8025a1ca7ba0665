-- Providers and channels that an operator lays down while calls go on.

-- `definition` is JSON, as in a file of providers/. It goes before a file of the same id.
CREATE TABLE provider (
  id         TEXT PRIMARY KEY,
  definition TEXT NOT NULL,
  author     TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL,
  version    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- All that is said of a channel. One whose key is in the environment has a row only where something is said of it, and
-- nothing in the columns from `provider` on. `credential` is sealed (table `channel`, row its id), and was given for
-- `origin` alone; `fingerprint` is all of it that is ever shown. `proxy` is sealed, too, under the name that this table had
-- before: `channel_rule`. `headers`, `parameters` and `times` are JSON. `version` begins with the time, so that a row
-- that is made again never has a version that somebody has seen.
CREATE TABLE channel (
  id          TEXT PRIMARY KEY,
  disabled    INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
  weight      INTEGER NOT NULL DEFAULT 1 CHECK (weight >= 0),
  priority    INTEGER NOT NULL DEFAULT 0,
  rpm         INTEGER CHECK (rpm > 0),
  tpm         INTEGER CHECK (tpm > 0),
  concurrency INTEGER CHECK (concurrency > 0),
  proxy       BLOB,
  tags        TEXT NOT NULL DEFAULT '',
  provider    TEXT,
  name        TEXT,
  base_url    TEXT,
  origin      TEXT,
  credential  BLOB,
  fingerprint TEXT,
  headers     TEXT,
  parameters  TEXT,
  times       TEXT,
  author      TEXT NOT NULL,
  created_ms  INTEGER NOT NULL,
  changed_ms  INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  CHECK ((provider IS NULL) = (name IS NULL)),
  CHECK (provider IS NOT NULL OR (base_url IS NULL AND credential IS NULL)),
  CHECK (credential IS NULL OR (origin IS NOT NULL AND fingerprint IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX channel_provider ON channel (provider) WHERE provider IS NOT NULL;
CREATE UNIQUE INDEX channel_name ON channel (provider, name) WHERE provider IS NOT NULL;

INSERT INTO channel (id, disabled, weight, priority, rpm, tpm, concurrency, proxy, tags, author, created_ms, changed_ms,
    version)
  SELECT channel, disabled, weight, priority, rpm, tpm, concurrency, proxy, tags, author, changed_ms, changed_ms,
    changed_ms
  FROM channel_rule;
DROP TABLE channel_rule;

-- Not by what only seals it anew.
CREATE TRIGGER channel_version AFTER UPDATE OF changed_ms ON channel BEGIN
  UPDATE channel SET version = OLD.version + 1 WHERE id = NEW.id;
END;
CREATE TRIGGER provider_version AFTER UPDATE OF changed_ms ON provider BEGIN
  UPDATE provider SET version = OLD.version + 1 WHERE id = NEW.id;
END;
