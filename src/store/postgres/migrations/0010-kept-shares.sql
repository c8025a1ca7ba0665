-- How many rows and bytes each account has in the tables of what outlives a call. On SQLite the only process keeps this
-- in memory; here each statement on these tables changes it.
CREATE TABLE kept_share (
  kind TEXT COLLATE "C" NOT NULL,
  account_id BIGINT NOT NULL,
  rows BIGINT NOT NULL CHECK (rows >= 0),
  bytes BIGINT NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (kind, account_id)
) WITH (fillfactor = 50);

CREATE FUNCTION count_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO kept_share AS k SELECT TG_TABLE_NAME, account_id, count(*), sum(bytes) FROM added GROUP BY account_id
      ON CONFLICT (kind, account_id) DO UPDATE SET rows = k.rows + excluded.rows, bytes = k.bytes + excluded.bytes;
  ELSIF TG_OP = 'DELETE' THEN
    UPDATE kept_share k SET rows = k.rows - r.rows, bytes = k.bytes - r.bytes
      FROM (SELECT account_id, count(*) AS rows, sum(bytes) AS bytes FROM removed GROUP BY account_id) r
      WHERE k.kind = TG_TABLE_NAME AND k.account_id = r.account_id;
  ELSE
    UPDATE kept_share k SET bytes = k.bytes + r.bytes
      FROM (SELECT account_id, sum(bytes) AS bytes FROM
          (SELECT account_id, bytes FROM added UNION ALL SELECT account_id, -bytes FROM removed) c
        GROUP BY account_id HAVING sum(bytes) <> 0) r
      WHERE k.kind = TG_TABLE_NAME AND k.account_id = r.account_id;
  END IF;
  RETURN NULL;
END $$;

DO $$
DECLARE
  kept TEXT;
BEGIN
  FOREACH kept IN ARRAY ARRAY['kept_response', 'kept_reasoning', 'kept_file', 'kept_reference'] LOOP
    EXECUTE format('CREATE TRIGGER kept_share_added AFTER INSERT ON %I REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION count_kept()', kept);
    EXECUTE format('CREATE TRIGGER kept_share_removed AFTER DELETE ON %I REFERENCING OLD TABLE AS removed
      FOR EACH STATEMENT EXECUTE FUNCTION count_kept()', kept);
    EXECUTE format('CREATE TRIGGER kept_share_changed AFTER UPDATE ON %I REFERENCING OLD TABLE AS removed NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION count_kept()', kept);
    -- Rows that are there already.
    EXECUTE format('INSERT INTO kept_share SELECT %L, account_id, count(*), sum(bytes) FROM %I GROUP BY account_id',
      kept, kept);
  END LOOP;
END $$;
