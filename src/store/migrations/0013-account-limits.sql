-- What all keys of one account may do together, by the tier of the key that calls. Keys that an operator has given calls
-- a minute of their own are counted by these alone.

ALTER TABLE tier ADD COLUMN account_qpm INTEGER NOT NULL DEFAULT 3000 CHECK (account_qpm > 0);
ALTER TABLE tier ADD COLUMN account_concurrency INTEGER NOT NULL DEFAULT 500 CHECK (account_concurrency > 0);
UPDATE tier SET account_qpm = min(10 * qpm, 1000000000),
  account_concurrency = CASE name WHEN 'free' THEN 50 WHEN 'pro' THEN 2000 ELSE 500 END;

DROP TRIGGER tier_version;
CREATE TRIGGER tier_version AFTER UPDATE OF qpm, price_per_mille, account_qpm, account_concurrency ON tier BEGIN
  UPDATE tier SET version = old.version + 1 WHERE name = new.name;
END;

-- Made by a member of the account and not by whoever runs the site.
ALTER TABLE api_key ADD COLUMN self_made INTEGER NOT NULL DEFAULT 0 CHECK (self_made IN (0, 1));
-- Only those who run the site give a key calls a minute of its own.
CREATE INDEX limit_rule_key ON limit_rule (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX api_key_limited ON api_key (account_id) WHERE qpm IS NOT NULL;
