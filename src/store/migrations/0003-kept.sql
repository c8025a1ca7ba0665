-- What must outlive a call and belongs to an account: responses that can be asked for again, reasoning state of tool
-- calls, tasks that are still being worked on, files that lie at an upstream. Callers' words are in `sealed` only.
-- `seq` grows with each row, so the lowest of an account is its oldest.

-- What a translation could not carry (a comma list), and what came and went: half of a SHA-256, in hex.
ALTER TABLE record ADD COLUMN loss TEXT;
ALTER TABLE record ADD COLUMN came_hash TEXT;
ALTER TABLE record ADD COLUMN went_hash TEXT;

-- Calls of the key are refused rather than lose something in translation.
ALTER TABLE api_key ADD COLUMN strict INTEGER NOT NULL DEFAULT 0 CHECK (strict IN (0, 1));

-- With `upstream_id` the upstream of that channel keeps it, too. Without `sealed` nobody else does.
CREATE TABLE kept_response (
  seq         INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL,
  id          TEXT NOT NULL,
  key_id      INTEGER NOT NULL,
  status      TEXT NOT NULL
                CHECK (status IN ('queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled')),
  model       TEXT NOT NULL,
  channel     TEXT,
  upstream_id TEXT,
  previous_id TEXT,
  created_ms  INTEGER NOT NULL,
  expires_ms  INTEGER NOT NULL,
  bytes       INTEGER NOT NULL,
  sealed      BLOB,
  CHECK (upstream_id IS NULL OR channel IS NOT NULL),
  CHECK (upstream_id IS NOT NULL OR sealed IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX kept_response_id ON kept_response (account_id, id);
CREATE INDEX kept_response_age ON kept_response (account_id, seq, bytes);
CREATE INDEX kept_response_expiry ON kept_response (expires_ms);
CREATE INDEX kept_response_open ON kept_response (status) WHERE status IN ('queued', 'in_progress');

-- `id` is the tool call's.
CREATE TABLE kept_reasoning (
  seq        INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL,
  id         TEXT NOT NULL,
  expires_ms INTEGER NOT NULL,
  bytes      INTEGER NOT NULL,
  sealed     BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX kept_reasoning_id ON kept_reasoning (account_id, id);
CREATE INDEX kept_reasoning_age ON kept_reasoning (account_id, seq, bytes);
CREATE INDEX kept_reasoning_expiry ON kept_reasoning (expires_ms);

-- `id` is the upstream's, and means nothing on another channel.
CREATE TABLE kept_file (
  seq        INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL,
  id         TEXT NOT NULL,
  channel    TEXT NOT NULL,
  expires_ms INTEGER NOT NULL,
  bytes      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX kept_file_id ON kept_file (account_id, id);
CREATE INDEX kept_file_age ON kept_file (account_id, seq, bytes);
CREATE INDEX kept_file_expiry ON kept_file (expires_ms);

-- `call_id` is the call's that began it and has its hold. Written before that hold, so that no hold is without a task;
-- without `upstream_id` it is not known that the upstream has begun. `due_ms` is when it is looked at next; none when
-- it is over and settled. `admitted` is JSON: what its bill rests on, and its record.
CREATE TABLE task (
  call_id     INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL,
  id          TEXT NOT NULL,
  key_id      INTEGER NOT NULL,
  provider    TEXT NOT NULL,
  model       TEXT NOT NULL,
  channel     TEXT NOT NULL,
  admitted    TEXT NOT NULL,
  upstream_id TEXT,
  status      TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired')),
  created_ms  INTEGER NOT NULL,
  updated_ms  INTEGER NOT NULL,
  polled_ms   INTEGER,
  due_ms      INTEGER,
  expires_ms  INTEGER NOT NULL,
  sealed      BLOB,
  CHECK (due_ms IS NOT NULL OR status NOT IN ('queued', 'running'))
) STRICT;
CREATE UNIQUE INDEX task_id ON task (account_id, id);
CREATE INDEX task_account ON task (account_id);
CREATE INDEX task_due ON task (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX task_unbegun ON task (call_id) WHERE due_ms IS NOT NULL AND upstream_id IS NULL;
CREATE INDEX task_open ON task (account_id) WHERE due_ms IS NOT NULL;
CREATE INDEX task_expiry ON task (expires_ms) WHERE due_ms IS NULL;

-- How far our count of a model's tokens is from what its provider reports: reported / counted, its mean and the sum of
-- the squared distances from it.
CREATE TABLE count_factor (
  model TEXT PRIMARY KEY,
  n     INTEGER NOT NULL CHECK (n > 0),
  mean  REAL NOT NULL,
  m2    REAL NOT NULL
) STRICT, WITHOUT ROWID;
