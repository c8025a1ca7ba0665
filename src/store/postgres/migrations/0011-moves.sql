-- The data of a gateway can be moved here from SQLite, and back (move.ts). At most one of both databases can be used at
-- any time, also when a move is killed: no process can begin to use this one while `state` is another than `ready`.
-- Without a row, no data was moved.
--   copied   all rows are here and were compared, but the files of SQLite can still be used
--   ready    the data is here
--   leaving  the data is being copied to SQLite
--   left     the data is in SQLite
CREATE TABLE move_state (
  one BIGINT PRIMARY KEY CHECK (one = 1),
  id TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('copied', 'ready', 'leaving', 'left')),
  changed_ms BIGINT NOT NULL
);

CREATE FUNCTION refuse_moved_data() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  present TEXT;
BEGIN
  SELECT state INTO present FROM move_state WHERE state <> 'ready';
  IF present IS NOT NULL THEN
    RAISE EXCEPTION 'this database cannot be used: a move of its data is not complete, or the data has left (%)', present
      USING ERRCODE = 'WR003';
  END IF;
  RETURN NEW;
END $$;
-- Registering writes the epoch. A renewal of the lease does not.
CREATE TRIGGER process_is_of_ready_data BEFORE INSERT OR UPDATE OF epoch ON process
  FOR EACH ROW WHEN (NEW.is_dead = 0) EXECUTE FUNCTION refuse_moved_data();
