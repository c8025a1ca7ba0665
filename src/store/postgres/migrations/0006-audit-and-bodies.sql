-- What the audit of the ledger needs. `seq` of transfers has gaps, and is not in the order of commits: so a transfer has
-- the id of its transaction, by which the audit finds what is new (postgres/audit.ts).
ALTER TABLE transfer ADD COLUMN xid BIGINT NOT NULL DEFAULT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT);
CREATE INDEX transfer_commit ON transfer (xid, seq);

-- The number of transfers that were ever made, to see that none is missing. Each connection counts in its own row, so
-- that none waits for another.
CREATE TABLE transfer_count (
  backend BIGINT PRIMARY KEY,
  transfers BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION count_transfers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO transfer_count SELECT pg_backend_pid(), n FROM (SELECT count(*) AS n FROM added) counted WHERE n > 0
    ON CONFLICT (backend) DO UPDATE SET transfers = transfer_count.transfers + excluded.transfers;
  RETURN NULL;
END $$;
CREATE TRIGGER transfer_is_counted AFTER INSERT ON transfer REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION count_transfers();

-- Holds that were removed without a record (cancel_hold). The audit would look for their records. A week is kept.
CREATE TABLE cancelled_hold (
  call_id BIGINT PRIMARY KEY,
  account_id BIGINT NOT NULL
);

-- Stored bodies of requests and answers, compressed and encrypted (records/bodies.ts). On SQLite they are in a file of
-- their own.
CREATE SCHEMA bodies;
CREATE TABLE bodies.body (
  call_id BIGINT PRIMARY KEY,
  account_id BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  request BYTEA NOT NULL,
  request_truncated BIGINT NOT NULL,
  answer BYTEA NOT NULL,
  answer_truncated BIGINT NOT NULL
);
-- The bytes are compressed already.
ALTER TABLE bodies.body ALTER COLUMN request SET STORAGE EXTERNAL, ALTER COLUMN answer SET STORAGE EXTERNAL;
CREATE INDEX body_account ON bodies.body (account_id, call_id);

-- The bytes of each account. Whoever changes bodies of an account locks its row first, in the order of accounts.
CREATE TABLE bodies.share (
  account_id BIGINT PRIMARY KEY,
  bytes BIGINT NOT NULL
) WITH (fillfactor = 50);
