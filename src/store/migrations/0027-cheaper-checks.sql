-- For a list of three or more constants in a CHECK, SQLite builds a temporary table with each row that is written. Every
-- call writes a transfer and a record. The same conditions, written with OR, need no table.

ALTER TABLE transfer RENAME TO transfer_1;

CREATE TABLE transfer (
  seq       INTEGER PRIMARY KEY,
  ref       INTEGER NOT NULL,
  kind      TEXT NOT NULL CHECK (kind = 'charge' OR kind = 'shortfall' OR kind = 'top_up' OR kind = 'gift' OR
              kind = 'adjustment' OR kind = 'refund' OR kind = 'redemption' OR kind = 'opening'),
  debit     INTEGER NOT NULL REFERENCES account,
  credit    INTEGER NOT NULL REFERENCES account,
  amount    INTEGER NOT NULL CHECK (amount > 0),
  made_ms   INTEGER NOT NULL,
  reference TEXT,
  author    TEXT,
  CHECK (debit <> credit)
) STRICT;

INSERT INTO transfer SELECT * FROM transfer_1;
DROP TABLE transfer_1; -- with its indexes and triggers

CREATE UNIQUE INDEX transfer_once ON transfer (ref, kind);
CREATE UNIQUE INDEX transfer_reference ON transfer (kind, reference) WHERE reference IS NOT NULL;
CREATE INDEX transfer_to ON transfer (credit) WHERE kind <> 'charge';

CREATE TRIGGER transfer_is_final BEFORE UPDATE ON transfer BEGIN SELECT raise(ABORT, 'a transfer is final'); END;
CREATE TRIGGER transfer_is_kept BEFORE DELETE ON transfer BEGIN SELECT raise(ABORT, 'a transfer is kept'); END;
CREATE TRIGGER refund_is_logged AFTER INSERT ON transfer WHEN new.kind = 'refund'
  BEGIN INSERT INTO record_log (call_id) VALUES (-new.ref); END;

ALTER TABLE record RENAME TO record_1;

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
  usage_source       TEXT NOT NULL
                       CHECK (usage_source = 'reported' OR usage_source = 'estimated' OR usage_source = 'none'),
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
  tags               TEXT,
  loss               TEXT,
  came_hash          TEXT,
  went_hash          TEXT,
  asked              TEXT,
  why                TEXT,
  conversation       TEXT
) STRICT;

INSERT INTO record SELECT * FROM record_1;
DROP TABLE record_1; -- with its triggers

CREATE TRIGGER record_is_logged AFTER INSERT ON record
  BEGIN INSERT INTO record_log (call_id) VALUES (new.call_id); END;
CREATE TRIGGER record_entries AFTER DELETE ON record BEGIN
  DELETE FROM record_index WHERE kind = 1 AND value = old.key_id AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 2 AND value = old.account_id AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 3 AND value = old.provider || '/' || old.model AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 4 AND value = old.outcome AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 5 AND value = old.end_user AND call_id = old.call_id;
END;
