-- The processes that use this database together. Each has a slot, whose number is part of the ids it mints, and an epoch.
-- Whoever takes a process for dead raises the epoch of its slot (fencing): the process can write nothing any more, and
-- its open holds can be settled by others.
--
-- Times are those of the database, so that the clocks of processes do not matter.
CREATE TABLE process (
  slot BIGINT PRIMARY KEY CHECK (slot BETWEEN 1 AND 127),
  epoch BIGINT NOT NULL,
  -- The process may be fenced after this time. Until it is, it can renew its lease.
  expires_ms BIGINT NOT NULL,
  -- Since when the lease has never run out.
  since_ms BIGINT NOT NULL,
  -- The process mints ids of times before this one. The next owner of the slot mints none of earlier times.
  ids_until_ms BIGINT NOT NULL,
  is_dead BIGINT NOT NULL CHECK (is_dead IN (0, 1)),
  seen_revision BIGINT NOT NULL DEFAULT 0,
  version TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL
) WITH (fillfactor = 50);

-- Which process makes the call: slot 0 is no process.
ALTER TABLE hold ADD COLUMN slot BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hold ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
CREATE INDEX hold_owner ON hold (slot, epoch);
-- Each call inserts and deletes a row, so the table would soon consist of deleted rows.
ALTER TABLE hold SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE FUNCTION database_ms() RETURNS BIGINT LANGUAGE sql AS $$
  SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)
$$;

-- Takes a slot for a new process. A process that holds the lock of its data folder knows that its predecessor there is
-- dead, and names its slot and epoch: it is fenced at once.
CREATE FUNCTION register_process(
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
  epoch := chosen.epoch + 1;
  ids_from_ms := chosen.ids_until_ms;
  ids_until_ms := greatest(chosen.ids_until_ms, now_ms) + 2 * ttl_ms;
  INSERT INTO process (slot, epoch, expires_ms, since_ms, ids_until_ms, is_dead, version, address)
    VALUES (slot, epoch, now_ms + ttl_ms, now_ms, ids_until_ms, 0, the_version, the_address)
    ON CONFLICT ON CONSTRAINT process_pkey DO UPDATE SET epoch = excluded.epoch, expires_ms = excluded.expires_ms,
      since_ms = excluded.since_ms, ids_until_ms = excluded.ids_until_ms, is_dead = 0, seen_revision = 0,
      version = excluded.version, address = excluded.address;
END $$;

-- Renews a lease, also one that has run out, as long as nobody has fenced the process. Null: it is fenced.
CREATE FUNCTION renew_lease(my_slot BIGINT, my_epoch BIGINT, ttl_ms BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
  now_ms BIGINT := database_ms();
  granted_ms BIGINT;
BEGIN
  UPDATE process SET
      since_ms = CASE WHEN expires_ms < now_ms THEN now_ms ELSE since_ms END,
      expires_ms = greatest(expires_ms, now_ms + ttl_ms),
      ids_until_ms = greatest(ids_until_ms, now_ms + 2 * ttl_ms)
    WHERE slot = my_slot AND epoch = my_epoch AND is_dead = 0
    RETURNING ids_until_ms INTO granted_ms;
  RETURN granted_ms;
END $$;

-- Fences all processes whose leases have run out, and returns how many. Only a process whose own lease was unbroken for
-- the time of one lease may do this. So an outage of the database, however long, kills nobody: after it, all leases have
-- run out, and all processes have that time to renew them.
CREATE FUNCTION fence_dead_processes(my_slot BIGINT, my_epoch BIGINT, ttl_ms BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
  now_ms BIGINT := database_ms();
  fenced BIGINT;
BEGIN
  PERFORM 1 FROM process WHERE slot = my_slot AND epoch = my_epoch AND is_dead = 0
    AND expires_ms >= now_ms AND since_ms <= now_ms - ttl_ms;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  -- FOR UPDATE conflicts with the lock of a running batch, which is then the proof that the process is alive.
  UPDATE process SET is_dead = 1, epoch = epoch + 1 WHERE slot IN
    (SELECT slot FROM process WHERE is_dead = 0 AND expires_ms < now_ms ORDER BY slot FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS fenced = ROW_COUNT;
  RETURN fenced;
END $$;

-- A process that stops by itself, after its last call.
CREATE FUNCTION leave_process(my_slot BIGINT, my_epoch BIGINT) RETURNS VOID LANGUAGE sql AS $$
  UPDATE process SET is_dead = 1, epoch = epoch + 1 WHERE slot = my_slot AND epoch = my_epoch AND is_dead = 0
$$;
