-- Where a configuration file says that a secret is: `env:NAME` or `file:path`. An export writes this instead of the
-- secret. Null: the secret was not set by a file.
ALTER TABLE channel ADD COLUMN credential_from TEXT;
ALTER TABLE webhook ADD COLUMN secret_from TEXT;
-- A short hash of a secret that a file has set, so that applying the same file again changes nothing.
ALTER TABLE webhook ADD COLUMN secret_mark TEXT;
