-- Which secrets what is in this database was made with. A mark is four bytes of a digest, in hex: it tells a secret from
-- others, and nothing else of it. A secret that nothing rests on any more has no row.

-- `replaced_ms` is when another became the newest of its kind. `is_first` has the pepper of what was made before peppers
-- were noted.
CREATE TABLE secret_mark (
  kind        TEXT NOT NULL CHECK (kind IN ('pepper', 'jwt', 'encryption')),
  mark        TEXT NOT NULL CHECK (length(mark) = 8),
  since_ms    INTEGER NOT NULL,
  replaced_ms INTEGER,
  is_first    INTEGER NOT NULL CHECK (is_first IN (0, 1)),
  PRIMARY KEY (kind, mark)
) STRICT, WITHOUT ROWID;

-- The mark of the pepper that is in the digest; null: the first.
ALTER TABLE api_key ADD COLUMN pepper TEXT;
ALTER TABLE code ADD COLUMN pepper TEXT;
CREATE INDEX api_key_pepper ON api_key (pepper) WHERE revoked_ms IS NULL;
CREATE INDEX code_pepper ON code (pepper) WHERE redeemed_ms IS NULL;
