-- The transfers of an account that are over, day by day: how many, the balance after the last of them, and a hash of all of
-- their lines, chained to the hash of the day before. `day` is of UTC, days since 1970. A day without transfers has no row.
--
-- A row is about the transfers after those of the row before it, up to the one with `last_kind` and `last_ref`, in the order
-- of the ledger. (Not up to a `seq`: a move to SQLite numbers transfers anew.)
CREATE TABLE daily_hash (
  seq        INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES account,
  day        INTEGER NOT NULL,
  transfers  INTEGER NOT NULL CHECK (transfers > 0),
  balance    INTEGER NOT NULL,
  last_kind  TEXT NOT NULL,
  last_ref   INTEGER NOT NULL,
  hash       BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE UNIQUE INDEX daily_hash_day ON daily_hash (account_id, day);

CREATE TRIGGER daily_hash_is_final BEFORE UPDATE ON daily_hash BEGIN SELECT raise(ABORT, 'a daily hash is final'); END;
CREATE TRIGGER daily_hash_is_kept BEFORE DELETE ON daily_hash BEGIN SELECT raise(ABORT, 'a daily hash is kept'); END;
