-- The number of the last batch of each process. A batch whose answer does not come in time is sent again over another
-- connection, with a higher number. Its first copy may still be on the way, and arrive much later. It must do nothing then:
-- it could remove the hold of a call that the second copy has allowed, or reserve money for a call that is over. The lock of
-- the row also makes a second copy wait until the first one has ended.
--
-- It is not a column of `process`, because the renewal of a lease would wait for the running batch.
CREATE TABLE process_batch (
  slot BIGINT PRIMARY KEY,
  epoch BIGINT NOT NULL,
  number BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Processes of earlier versions call ledger_batch itself.
CREATE FUNCTION numbered_batch(
  my_number BIGINT, my_slot BIGINT, my_epoch BIGINT, calls BIGINT[], accounts BIGINT[], jobs JSON, answered BIGINT[],
  answers TEXT[], test_ms BIGINT
) RETURNS TEXT LANGUAGE plpgsql SET lock_timeout = '3s' AS $$
BEGIN
  -- For another epoch, ledger_batch says whether this process is fenced.
  INSERT INTO process_batch AS last (slot, epoch, number) VALUES (my_slot, my_epoch, my_number)
    ON CONFLICT (slot) DO UPDATE SET epoch = excluded.epoch, number = excluded.number
    WHERE last.epoch <> excluded.epoch OR last.number < excluded.number;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a later batch of this process was sent' USING ERRCODE = 'WR003';
  END IF;
  RETURN ledger_batch(my_slot, my_epoch, calls, accounts, jobs, answered, answers, test_ms);
END $$;
