-- Tickets for downloads. What the columns mean is said in the migration of SQLite.
CREATE TABLE download_ticket (
  digest BYTEA PRIMARY KEY CHECK (length(digest) = 32),
  session_id BIGINT NOT NULL REFERENCES session,
  request TEXT COLLATE "C" NOT NULL,
  expires_ms BIGINT NOT NULL
);
CREATE INDEX download_ticket_session ON download_ticket (session_id);
CREATE INDEX download_ticket_expires ON download_ticket (expires_ms);
