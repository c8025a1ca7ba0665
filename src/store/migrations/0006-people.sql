-- People: who may sign in, and which accounts they look after. An account is what holds a balance; a person is a
-- member of it in a role. `rank` orders roles: 1 viewer, 2 developer, 3 manager.

CREATE TABLE person (
  id         INTEGER PRIMARY KEY,
  email      TEXT NOT NULL UNIQUE,      -- in lower case
  name       TEXT NOT NULL,
  role       TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'support', 'member')),
  password   TEXT,                      -- argon2id
  disabled   INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
  created_ms INTEGER NOT NULL,
  version    INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE member (
  account_id INTEGER NOT NULL REFERENCES account,
  person_id  INTEGER NOT NULL REFERENCES person,
  rank       INTEGER NOT NULL CHECK (rank BETWEEN 1 AND 3),
  added_ms   INTEGER NOT NULL,
  version    INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (account_id, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_person ON member (person_id);
