-- What more a key and an account can be told: until when and from where a key may call and what, a key that is renewed
-- while its old text still works, and what all keys of an account may use.

ALTER TABLE api_key ADD COLUMN expires_ms INTEGER;
ALTER TABLE api_key ADD COLUMN disabled_ms INTEGER;
-- Comma lists: of kinds of endpoints, and of addresses with how many of their bits count. Null: whichever.
ALTER TABLE api_key ADD COLUMN endpoints TEXT;
ALTER TABLE api_key ADD COLUMN addresses TEXT;
-- The text before the last renewal, which works for some time longer, and the mark of the pepper in its digest.
ALTER TABLE api_key ADD COLUMN old_digest BLOB CHECK (length(old_digest) = 32);
ALTER TABLE api_key ADD COLUMN old_until_ms INTEGER CHECK ((old_until_ms IS NULL) = (old_digest IS NULL));
ALTER TABLE api_key ADD COLUMN old_pepper TEXT;
CREATE UNIQUE INDEX api_key_old ON api_key (old_digest) WHERE old_digest IS NOT NULL;

-- `type` is whose an account is; how it pays is `kind`. `tier` is of its new keys. `allows` and `denies` are as a key's,
-- and hold for all of its keys beside their own.
ALTER TABLE account ADD COLUMN type TEXT NOT NULL DEFAULT 'team' CHECK (type IN ('personal', 'team'));
ALTER TABLE account ADD COLUMN tier TEXT REFERENCES tier;
ALTER TABLE account ADD COLUMN allows TEXT;
ALTER TABLE account ADD COLUMN denies TEXT;

-- Lists of a million, in the orders and by the words that people look for; each has the id behind it.
CREATE INDEX api_key_name ON api_key (name COLLATE NOCASE);
CREATE INDEX api_key_named ON api_key (account_id, name);
CREATE INDEX api_key_suffix ON api_key (suffix);
CREATE INDEX api_key_tier ON api_key (tier);
CREATE INDEX account_name ON account (name COLLATE NOCASE);
CREATE INDEX account_tier ON account (tier) WHERE tier IS NOT NULL;

-- Raised by what people edit. What calls do to an account (held, balance) or a budget (held, spent) fires nothing.
CREATE TRIGGER api_key_version AFTER UPDATE OF name, suffix, tier, qpm, clamps, keeps_bodies, strict, explains, allows,
  denies, requires, endpoints, addresses, expires_ms, disabled_ms, revoked_ms, old_until_ms ON api_key BEGIN
  UPDATE api_key SET version = old.version + 1 WHERE id = new.id;
END;
CREATE TRIGGER account_version AFTER UPDATE OF name, kind, tier, credit_limit, keeps_bodies, frozen_ms, allows, denies
  ON account BEGIN
  UPDATE account SET version = old.version + 1 WHERE id = new.id;
END;
ALTER TABLE budget ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
CREATE TRIGGER budget_version AFTER UPDATE OF cap ON budget BEGIN
  UPDATE budget SET version = old.version + 1 WHERE scope_id = new.scope_id AND span = new.span;
END;
