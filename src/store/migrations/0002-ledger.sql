-- Double entry. Money moves only by a transfer between two accounts, and transfers are never changed: the sum over all
-- balances is zero in every committed state. Holds set money aside and move none.

ALTER TABLE account RENAME TO account_1;
ALTER TABLE api_key RENAME TO api_key_1;
ALTER TABLE record RENAME TO record_1;
DROP TABLE hold; -- a start has released all holds of calls that a crash cut off

CREATE TABLE account (
  id           INTEGER PRIMARY KEY,
  name         TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('prepaid', 'postpaid', 'operator')),
  balance      INTEGER NOT NULL DEFAULT 0,
  held         INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  credit_limit INTEGER NOT NULL DEFAULT 0 CHECK (credit_limit >= 0),
  keeps_bodies INTEGER NOT NULL DEFAULT 0 CHECK (keeps_bodies IN (0, 1)),
  frozen_ms    INTEGER,
  created_ms   INTEGER NOT NULL,
  CHECK (kind <> 'prepaid' OR balance + credit_limit - held >= 0),
  -- A quarter of 64 bits, so that no sum of these overflows into a floating point number.
  CHECK (abs(balance) <= 2305843009213693952 AND held <= 2305843009213693952 AND credit_limit <= 2305843009213693952)
) STRICT;

INSERT INTO account (id, name, kind, created_ms) VALUES
  (1, 'revenue', 'operator', 0),   -- what calls have brought in
  (2, 'promo', 'operator', 0),     -- what was given away
  (3, 'shortfall', 'operator', 0), -- what calls cost beyond what their callers had
  (4, 'clearing', 'operator', 0);  -- what came from outside

INSERT INTO account (id, name, kind, balance, created_ms)
  SELECT id, name, 'prepaid', balance, created_ms FROM account_1;

-- debit gives and credit receives. `ref` is the call that is charged or refunded, the code that is redeemed, or an id
-- of the transfer's own; with it, nothing happens twice.
CREATE TABLE transfer (
  seq       INTEGER PRIMARY KEY,
  ref       INTEGER NOT NULL,
  kind      TEXT NOT NULL CHECK (kind IN
              ('charge', 'shortfall', 'top_up', 'gift', 'adjustment', 'refund', 'redemption', 'opening')),
  debit     INTEGER NOT NULL REFERENCES account,
  credit    INTEGER NOT NULL REFERENCES account,
  amount    INTEGER NOT NULL CHECK (amount > 0),
  made_ms   INTEGER NOT NULL,
  reference TEXT,
  author    TEXT,
  CHECK (debit <> credit)
) STRICT;

CREATE UNIQUE INDEX transfer_once ON transfer (ref, kind);
CREATE UNIQUE INDEX transfer_reference ON transfer (kind, reference) WHERE reference IS NOT NULL;
-- Charges are found by their calls' records; the rest of a statement is short.
CREATE INDEX transfer_to ON transfer (credit) WHERE kind <> 'charge';
CREATE INDEX transfer_from ON transfer (debit) WHERE kind <> 'charge';

CREATE TRIGGER transfer_is_final BEFORE UPDATE ON transfer BEGIN SELECT raise(ABORT, 'a transfer is final'); END;
CREATE TRIGGER transfer_is_kept BEFORE DELETE ON transfer BEGIN SELECT raise(ABORT, 'a transfer is kept'); END;

INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
  SELECT id, 'opening', 4, id, balance, created_ms FROM account_1 WHERE balance > 0;
UPDATE account SET balance = -(SELECT coalesce(sum(amount), 0) FROM transfer) WHERE id = 4;

CREATE TABLE api_key (
  id           INTEGER PRIMARY KEY,
  digest       BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  suffix       TEXT NOT NULL,
  name         TEXT NOT NULL,
  account_id   INTEGER NOT NULL REFERENCES account,
  tier         TEXT NOT NULL REFERENCES tier,
  qpm          INTEGER CHECK (qpm > 0),
  clamps       INTEGER NOT NULL DEFAULT 0 CHECK (clamps IN (0, 1)),
  keeps_bodies INTEGER NOT NULL DEFAULT 0 CHECK (keeps_bodies IN (0, 1)),
  created_ms   INTEGER NOT NULL,
  revoked_ms   INTEGER
) STRICT;

INSERT INTO api_key (id, digest, suffix, name, account_id, tier, qpm, created_ms, revoked_ms)
  SELECT id, digest, suffix, name, account_id, tier, qpm, created_ms, revoked_ms FROM api_key_1;
CREATE INDEX api_key_account ON api_key (account_id);

-- Open holds only: a settled call is a record. `used` is what a crash may still charge: what had been delivered at the
-- last checkpoint. `draft` is the record so far. A task outlives restarts; a call ends with its connection.
CREATE TABLE hold (
  call_id    INTEGER PRIMARY KEY,
  kind       TEXT NOT NULL CHECK (kind IN ('call', 'task')),
  account_id INTEGER NOT NULL REFERENCES account,
  key_id     INTEGER NOT NULL,
  amount     INTEGER NOT NULL CHECK (amount >= 0),
  used       INTEGER NOT NULL DEFAULT 0,
  draft      TEXT NOT NULL,
  CHECK (used >= 0 AND used <= amount)
) STRICT;

-- Of a key or of an account: their ids never meet. `period` is the day or month (UTC) that `spent` is of. `ceiling` is
-- `cap`, or what was already spent and held when the cap was lowered below it.
CREATE TABLE budget (
  scope_id INTEGER NOT NULL,
  span     TEXT NOT NULL CHECK (span IN ('total', 'day', 'month')),
  cap      INTEGER NOT NULL CHECK (cap >= 0),
  ceiling  INTEGER NOT NULL,
  spent    INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0),
  held     INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  period   INTEGER NOT NULL,
  PRIMARY KEY (scope_id, span),
  CHECK (ceiling >= cap AND spent + held <= ceiling)
) STRICT, WITHOUT ROWID;

CREATE TABLE code (
  id          INTEGER PRIMARY KEY,
  digest      BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  batch       TEXT NOT NULL,
  amount      INTEGER NOT NULL CHECK (amount > 0),
  author      TEXT NOT NULL,
  made_ms     INTEGER NOT NULL,
  expires_ms  INTEGER,
  redeemed_ms INTEGER,
  account_id  INTEGER REFERENCES account,
  CHECK ((redeemed_ms IS NULL) = (account_id IS NULL))
) STRICT;

-- Every price that ever held, so that a record can be checked years later.
CREATE TABLE price (
  version INTEGER PRIMARY KEY,
  model   TEXT NOT NULL,
  origin  TEXT NOT NULL CHECK (origin IN ('shipped', 'operator', 'withdrawn')),
  price   TEXT NOT NULL,
  author  TEXT NOT NULL,
  made_ms INTEGER NOT NULL
) STRICT;

CREATE TRIGGER price_is_final BEFORE UPDATE ON price BEGIN SELECT raise(ABORT, 'a price is final'); END;
CREATE TRIGGER price_is_kept BEFORE DELETE ON price BEGIN SELECT raise(ABORT, 'a price is kept'); END;

-- The call's id tells its time, so the oldest are deleted by a range.
CREATE TABLE idempotency (
  key_id      INTEGER NOT NULL,
  name        TEXT NOT NULL,
  fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
  call_id     INTEGER NOT NULL,
  done        INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
  PRIMARY KEY (key_id, name)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX idempotency_call ON idempotency (call_id);

-- The answer of such a call, sealed; none where it was too large to keep.
CREATE TABLE kept_answer (
  call_id INTEGER PRIMARY KEY,
  sealed  BLOB NOT NULL
) STRICT;

-- One row a call. `call_id` grows with time, so every index below also sorts by time.
CREATE TABLE record (
  call_id            INTEGER PRIMARY KEY,
  key_id             INTEGER NOT NULL,
  account_id         INTEGER NOT NULL,
  dialect            TEXT NOT NULL,
  provider           TEXT,
  model              TEXT,
  channel            TEXT,
  status             INTEGER NOT NULL,
  error              TEXT,
  outcome            TEXT NOT NULL,
  rule               TEXT NOT NULL,
  usage_source       TEXT NOT NULL CHECK (usage_source IN ('reported', 'estimated', 'none')),
  streamed           INTEGER NOT NULL,
  input_tokens       INTEGER NOT NULL,
  cache_read_tokens  INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  reasoning_tokens   INTEGER NOT NULL,
  cost               INTEGER NOT NULL CHECK (cost >= 0),
  shortfall          INTEGER NOT NULL CHECK (shortfall >= 0),
  held               INTEGER NOT NULL CHECK (held >= 0),
  price_version      INTEGER,
  lines              TEXT,
  attempts           TEXT,
  timings            TEXT,
  first_ms           INTEGER,
  duration_ms        INTEGER NOT NULL,
  end_user           TEXT,
  tags               TEXT
) STRICT;

INSERT INTO record
  SELECT call_id, key_id, account_id, 'openai-chat', provider, model, channel, status, NULL, outcome, 'house',
    usage_source, streamed, input_tokens, cache_read_tokens, 0, output_tokens, 0, cost, 0, 0, NULL, NULL, NULL, NULL,
    NULL, duration_ms, NULL, NULL
  FROM record_1;

CREATE INDEX record_account ON record (account_id);
CREATE INDEX record_key ON record (key_id);
CREATE INDEX record_model ON record (model, provider);
CREATE INDEX record_failure ON record (outcome) WHERE outcome <> 'completed';
CREATE INDEX record_end_user ON record (end_user) WHERE end_user IS NOT NULL;

DROP TABLE record_1;
DROP TABLE api_key_1;
DROP TABLE account_1;
