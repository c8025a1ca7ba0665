-- A key for the playground of one person (or service token): the name of that actor, as in usr_… It is used again and again,
-- with a new text each time, so that an account has one for each actor.
ALTER TABLE api_key ADD COLUMN playground_of TEXT;
CREATE UNIQUE INDEX api_key_playground ON api_key (account_id, playground_of)
  WHERE playground_of IS NOT NULL AND revoked_ms IS NULL;
