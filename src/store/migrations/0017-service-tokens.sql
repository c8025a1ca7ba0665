-- Service tokens: credentials of programs for the management interface. A token has a role for the site, or it is of one
-- account with a rank in it, as a member has (1 viewer, 2 developer, 3 manager). Only a digest of its text is stored.
CREATE TABLE service_token (
  id           INTEGER PRIMARY KEY,
  digest       BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  suffix       TEXT NOT NULL,
  name         TEXT NOT NULL,
  role         TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'support', 'member')),
  account_id   INTEGER REFERENCES account,
  rank         INTEGER CHECK (rank BETWEEN 1 AND 3),
  creator      TEXT NOT NULL,            -- the actor who created it, as in the audit log
  created_ms   INTEGER NOT NULL,
  expires_ms   INTEGER,
  used_ms      INTEGER,                  -- the last use, to the minute
  revoked_ms   INTEGER,
  old_digest   BLOB CHECK (length(old_digest) = 32), -- the text before the last rotation
  old_until_ms INTEGER CHECK ((old_until_ms IS NULL) = (old_digest IS NULL)),
  version      INTEGER NOT NULL DEFAULT 1,
  CHECK ((account_id IS NULL) = (rank IS NULL)),
  CHECK ((account_id IS NULL) = (role <> 'member'))
) STRICT;
CREATE UNIQUE INDEX service_token_old ON service_token (old_digest) WHERE old_digest IS NOT NULL;
CREATE INDEX service_token_account ON service_token (account_id, name);
CREATE INDEX service_token_creator ON service_token (creator);

-- The use of a token does not change its version.
CREATE TRIGGER service_token_version AFTER UPDATE OF name, suffix, expires_ms, revoked_ms, old_until_ms ON service_token
BEGIN
  UPDATE service_token SET version = old.version + 1 WHERE id = new.id;
END;

-- The accounts that an actor reaches: a person as a member, a service token by its own account. No person has the id of a
-- token, because all ids come from one sequence.
CREATE VIEW account_access AS
  SELECT person_id AS actor_id, account_id, rank FROM member
  UNION ALL
  SELECT id, account_id, rank FROM service_token WHERE account_id IS NOT NULL AND revoked_ms IS NULL;
