-- The epoch of a new process is the time of its registration, not the next number. After a failover to a standby that has
-- not received a registration, the next process gets the same slot. With the next number it would also get the same epoch,
-- and neither of the two would be fenced.
CREATE OR REPLACE FUNCTION register_process(
  the_version TEXT, the_address TEXT, ttl_ms BIGINT, old_slot BIGINT, old_epoch BIGINT,
  OUT slot BIGINT, OUT epoch BIGINT, OUT ids_from_ms BIGINT, OUT ids_until_ms BIGINT
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_ms BIGINT;
  chosen process;
BEGIN
  -- Two processes that begin at the same time must not choose the same slot.
  PERFORM pg_advisory_xact_lock(7311580424);
  -- The last batch of the predecessor may still run on the server: this waits for it.
  PERFORM 1 FROM process p WHERE p.slot = old_slot AND p.epoch = old_epoch AND p.is_dead = 0 FOR UPDATE;
  UPDATE process p SET is_dead = 1, epoch = p.epoch + 1
    WHERE p.slot = old_slot AND p.epoch = old_epoch AND p.is_dead = 0;
  now_ms := database_ms();
  -- A slot whose ids are used up to a future time is taken last: new ids would be ahead of the clock.
  SELECT s.n, coalesce(p.epoch, 0), 0, 0, coalesce(p.ids_until_ms, 0) INTO chosen
    FROM generate_series(1, 127) s(n) LEFT JOIN process p ON p.slot = s.n
    WHERE p.slot IS NULL OR p.is_dead = 1
    ORDER BY coalesce(p.ids_until_ms, 0) > now_ms, s.n LIMIT 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'all 127 slots are in use' USING ERRCODE = 'WR002';
  END IF;
  slot := chosen.slot;
  epoch := greatest(chosen.epoch + 1, now_ms);
  ids_from_ms := chosen.ids_until_ms;
  ids_until_ms := greatest(chosen.ids_until_ms, now_ms) + 2 * ttl_ms;
  INSERT INTO process (slot, epoch, expires_ms, since_ms, ids_until_ms, is_dead, version, address)
    VALUES (slot, epoch, now_ms + ttl_ms, now_ms, ids_until_ms, 0, the_version, the_address)
    ON CONFLICT ON CONSTRAINT process_pkey DO UPDATE SET epoch = excluded.epoch, expires_ms = excluded.expires_ms,
      since_ms = excluded.since_ms, ids_until_ms = excluded.ids_until_ms, is_dead = 0, seen_revision = 0,
      version = excluded.version, address = excluded.address;
END $$;
