-- What a process needs to know of the database before it uses it. This file runs first, whatever migrations there are.
CREATE TABLE schema_info (
  -- There is one row.
  id BIGINT PRIMARY KEY CHECK (id = 1),
  -- Tells this database from others, so that a process that was given another one notices.
  mark TEXT COLLATE "C" NOT NULL,
  -- No gateway starts while data is being moved into the database.
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('moving', 'ready')),
  -- A Weir whose newest migration is older must not use this database.
  min_version BIGINT NOT NULL
);
INSERT INTO schema_info VALUES (1, CAST(gen_random_uuid() AS TEXT), 'ready', 0);

CREATE TABLE schema_migration (
  version BIGINT PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  made_ms BIGINT NOT NULL
);
