-- Records in the order in which they were written, for whoever sums them up; and what is left of those that were
-- deleted.

-- `seq` grows with each commit. `call_id` is that of a record that was written, or, below zero, of a call that was
-- refunded. The first row is of no call: by it, statistics know whose they are. What has been summed up is let go, but
-- for the last rows, so that the next number is always greater than all before it.
CREATE TABLE record_log (
  seq     INTEGER PRIMARY KEY,
  call_id INTEGER NOT NULL
) STRICT;
INSERT INTO record_log VALUES (0, random());

CREATE TRIGGER record_is_logged AFTER INSERT ON record
  BEGIN INSERT INTO record_log (call_id) VALUES (new.call_id); END;
CREATE TRIGGER refund_is_logged AFTER INSERT ON transfer WHEN new.kind = 'refund'
  BEGIN INSERT INTO record_log (call_id) VALUES (-new.ref); END;

-- Records are deleted by rule: what an operator ordered, and for how far it has been done. What is null does not
-- matter. Those from `next_id` on and below `before_id` are still to be looked at.
CREATE TABLE record_deletion (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER,
  key_id     INTEGER,
  end_user   TEXT,
  from_id    INTEGER NOT NULL,
  before_id  INTEGER NOT NULL,
  next_id    INTEGER NOT NULL,
  deleted    INTEGER NOT NULL DEFAULT 0 CHECK (deleted >= 0),
  author     TEXT NOT NULL,
  made_ms    INTEGER NOT NULL,
  done_ms    INTEGER,
  CHECK (from_id <= next_id AND from_id <= before_id)
) STRICT;
CREATE INDEX record_deletion_open ON record_deletion (id) WHERE done_ms IS NULL;

-- What the books must still know of a record that was deleted by order: its charge stays, and must be found right.
-- Below the id in the setting `records_from` nothing is kept, and this is not either.
CREATE TABLE deleted_record (
  call_id    INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL,
  cost       INTEGER NOT NULL,
  shortfall  INTEGER NOT NULL
) STRICT;

-- What the records that are no longer there came to, by account and day (UTC, days since 1970).
CREATE TABLE deleted_sum (
  account_id INTEGER NOT NULL,
  day        INTEGER NOT NULL,
  calls      INTEGER NOT NULL,
  cost       INTEGER NOT NULL,
  shortfall  INTEGER NOT NULL,
  PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;
