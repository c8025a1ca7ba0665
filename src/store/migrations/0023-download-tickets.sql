-- Tickets for downloads: a link in a browser cannot carry the token of a session, so it carries a ticket, which works once and
-- for a short time. Only its digest is stored. `request` says what is downloaded, as JSON.
CREATE TABLE download_ticket (
  digest     BLOB PRIMARY KEY CHECK (length(digest) = 32),
  session_id INTEGER NOT NULL REFERENCES session,
  request    TEXT NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX download_ticket_session ON download_ticket (session_id);
CREATE INDEX download_ticket_expires ON download_ticket (expires_ms);
