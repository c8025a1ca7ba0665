-- What people have changed, in a chain: each row's hash is over the row before it and all of its own, so that one that
-- is changed, taken away or put elsewhere is found. And versions of what can be edited, so that nobody overwrites
-- what they have not seen.

-- `changes` is JSON: what each column was and is, without anything secret.
CREATE TABLE audit (
  seq        INTEGER PRIMARY KEY,
  made_ms    INTEGER NOT NULL,
  actor      TEXT NOT NULL,
  address    TEXT,
  request    TEXT,
  action     TEXT NOT NULL,
  target     TEXT NOT NULL,
  account_id INTEGER,
  changes    TEXT NOT NULL,
  hash       BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE INDEX audit_account ON audit (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX audit_target ON audit (target);
CREATE INDEX audit_actor ON audit (actor);

CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'an audit row is final'); END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'an audit row is kept'); END;

-- Raised by a trigger on what people edit, and not by what calls do.
ALTER TABLE account ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE api_key ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tier ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE limit_rule ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE model_route ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE channel_rule ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE setting ADD COLUMN version INTEGER NOT NULL DEFAULT 1;

CREATE TRIGGER tier_version AFTER UPDATE OF qpm, price_per_mille ON tier BEGIN
  UPDATE tier SET version = old.version + 1 WHERE name = new.name;
END;
CREATE TRIGGER limit_rule_version AFTER UPDATE OF amount ON limit_rule BEGIN
  UPDATE limit_rule SET version = old.version + 1 WHERE id = new.id;
END;
CREATE TRIGGER model_route_version AFTER UPDATE OF policy, members ON model_route BEGIN
  UPDATE model_route SET version = old.version + 1 WHERE name = new.name;
END;
CREATE TRIGGER setting_version AFTER UPDATE OF value ON setting BEGIN
  UPDATE setting SET version = old.version + 1 WHERE name = new.name;
END;
