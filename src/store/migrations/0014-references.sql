-- Ids of what an upstream has made in answers to an account: containers, contexts, stored items, messages of threads,
-- files. `id` begins with the kind and a colon. An id means nothing on another channel.
CREATE TABLE kept_reference (
  seq        INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL,
  id         TEXT NOT NULL,
  channel    TEXT NOT NULL,
  expires_ms INTEGER NOT NULL,
  bytes      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX kept_reference_id ON kept_reference (account_id, id);
CREATE INDEX kept_reference_age ON kept_reference (account_id, seq, bytes);
CREATE INDEX kept_reference_expiry ON kept_reference (expires_ms);

-- Whether requests on this channel may name what their account has not made through this gateway.
ALTER TABLE channel ADD COLUMN foreign_ids INTEGER NOT NULL DEFAULT 0 CHECK (foreign_ids IN (0, 1));
