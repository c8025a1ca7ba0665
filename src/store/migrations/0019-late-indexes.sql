-- The records of a key, an account and so on, and the transfers of an account, are found by entries that are written
-- for many rows at once. Written with each call, they would cost more than the rest of the call: nearly every one is on
-- a page of its own.

-- `kind` says what `value` is: 1 the key, 2 the account, 3 the model as callers write it, 4 the outcome of a call that
-- failed, 5 the end user.
CREATE TABLE record_index (
  kind    INTEGER NOT NULL,
  value   ANY NOT NULL,
  call_id INTEGER NOT NULL,
  PRIMARY KEY (kind, value, call_id)
) STRICT, WITHOUT ROWID;

-- `account_id` is who gives.
CREATE TABLE transfer_index (
  account_id INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (account_id, seq)
) STRICT, WITHOUT ROWID;

-- How far each index is: of `record_log` for the kinds above, of `transfer` for kind 0. Rows after it have no entry yet
-- and are found by reading them.
CREATE TABLE index_progress (
  kind INTEGER PRIMARY KEY,
  seq  INTEGER NOT NULL
) STRICT;

-- In the order of the old indexes, so that nothing must be sorted.
INSERT INTO record_index SELECT 1, key_id, call_id FROM record INDEXED BY record_key ORDER BY key_id, call_id;
INSERT INTO record_index SELECT 2, account_id, call_id FROM record INDEXED BY record_account
  ORDER BY account_id, call_id;
INSERT INTO record_index SELECT 3, provider || '/' || model, call_id FROM record INDEXED BY record_model
  WHERE provider IS NOT NULL AND model IS NOT NULL ORDER BY model, provider, call_id;
INSERT INTO record_index SELECT 4, outcome, call_id FROM record INDEXED BY record_failure
  WHERE outcome <> 'completed' ORDER BY outcome, call_id;
INSERT INTO record_index SELECT 5, end_user, call_id FROM record INDEXED BY record_end_user
  WHERE end_user IS NOT NULL ORDER BY end_user, call_id;
INSERT INTO transfer_index SELECT debit, seq FROM transfer INDEXED BY transfer_from ORDER BY debit, seq;
INSERT INTO index_progress SELECT column1, (SELECT max(seq) FROM record_log) FROM (VALUES (1), (2), (3), (4), (5));
INSERT INTO index_progress SELECT 0, coalesce(max(seq), 0) FROM transfer;

DROP INDEX record_key;
DROP INDEX record_account;
DROP INDEX record_model;
DROP INDEX record_failure;
DROP INDEX record_end_user;
DROP INDEX transfer_from;

CREATE TRIGGER record_entries AFTER DELETE ON record BEGIN
  DELETE FROM record_index WHERE kind = 1 AND value = old.key_id AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 2 AND value = old.account_id AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 3 AND value = old.provider || '/' || old.model AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 4 AND value = old.outcome AND call_id = old.call_id;
  DELETE FROM record_index WHERE kind = 5 AND value = old.end_user AND call_id = old.call_id;
END;
