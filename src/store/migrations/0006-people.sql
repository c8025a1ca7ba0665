-- People: who may sign in, and which accounts they look after. An account is what holds a balance; a person is a
-- member of it in a role. `rank` orders roles: 1 viewer, 2 developer, 3 manager. Whatever opens something (tokens,
-- codes) is kept as a digest only.

-- `ver` is in every token of theirs: raised, it makes them all void. Somebody who was removed stays as a row without a
-- name, for what they have done.
CREATE TABLE person (
  id         INTEGER PRIMARY KEY,
  email      TEXT NOT NULL UNIQUE,      -- in lower case
  name       TEXT NOT NULL,
  role       TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'support', 'member')),
  password   TEXT,                      -- argon2id
  disabled   INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
  ver        INTEGER NOT NULL DEFAULT 1,
  signed_ms  INTEGER,                   -- when they last signed in
  removed_ms INTEGER,
  created_ms INTEGER NOT NULL,
  version    INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX person_owner ON person (role) WHERE role = 'owner';

CREATE TRIGGER person_version AFTER UPDATE OF email, name, role, disabled, removed_ms ON person BEGIN
  UPDATE person SET version = old.version + 1 WHERE id = new.id;
END;

CREATE TABLE member (
  account_id INTEGER NOT NULL REFERENCES account,
  person_id  INTEGER NOT NULL REFERENCES person,
  rank       INTEGER NOT NULL CHECK (rank BETWEEN 1 AND 3),
  added_ms   INTEGER NOT NULL,
  version    INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (account_id, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_person ON member (person_id);

CREATE TRIGGER member_version AFTER UPDATE OF rank ON member BEGIN
  UPDATE member SET version = old.version + 1 WHERE account_id = new.account_id AND person_id = new.person_id;
END;

-- One signing in. Without a person it is of the operator, who has the command line. `place` is the address, of IPv6 its
-- network. `next` is the token that renews it, sealed, for whoever asks twice at the same time.
CREATE TABLE session (
  id         INTEGER PRIMARY KEY,
  person_id  INTEGER REFERENCES person,
  made_ms    INTEGER NOT NULL,
  seen_ms    INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  ended_ms   INTEGER,
  ended_why  TEXT,
  address    TEXT NOT NULL,
  place      TEXT NOT NULL,
  agent      TEXT NOT NULL,
  next       BLOB
) STRICT;
CREATE INDEX session_person ON session (person_id, ended_ms);
CREATE INDEX session_expires ON session (expires_ms);

-- Tokens that renew a session, each once.
CREATE TABLE refresh (
  digest     BLOB PRIMARY KEY CHECK (length(digest) = 32),
  session_id INTEGER NOT NULL REFERENCES session,
  made_ms    INTEGER NOT NULL,
  used_ms    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_session ON refresh (session_id, made_ms);

-- The second factor. Until it is confirmed nobody is asked for it. No step is taken twice.
CREATE TABLE totp (
  person_id    INTEGER PRIMARY KEY REFERENCES person,
  sealed       BLOB NOT NULL,
  confirmed_ms INTEGER,
  last_step    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE recovery_code (
  person_id INTEGER NOT NULL REFERENCES person,
  digest    BLOB NOT NULL CHECK (length(digest) = 32),
  used_ms   INTEGER,
  PRIMARY KEY (person_id, digest)
) STRICT, WITHOUT ROWID;

-- Whoever has the token of one may come in with its address and role; or, of somebody who is there, choose another
-- password (`kind`).
CREATE TABLE invitation (
  id          INTEGER PRIMARY KEY,
  digest      BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  kind        TEXT NOT NULL CHECK (kind IN ('join', 'password')),
  email       TEXT NOT NULL,
  role        TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'support', 'member')),
  account_id  INTEGER REFERENCES account,
  rank        INTEGER CHECK (rank BETWEEN 1 AND 3),
  by_id       INTEGER,                  -- null: the operator
  made_ms     INTEGER NOT NULL,
  expires_ms  INTEGER NOT NULL,
  accepted_ms INTEGER,
  person_id   INTEGER REFERENCES person,
  revoked_ms  INTEGER,
  version     INTEGER NOT NULL DEFAULT 1,
  CHECK ((account_id IS NULL) = (rank IS NULL))
) STRICT;
CREATE INDEX invitation_account ON invitation (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX invitation_by ON invitation (by_id);
