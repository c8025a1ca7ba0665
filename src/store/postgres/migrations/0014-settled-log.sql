-- The order in which calls were settled, for whoever follows the calls as they end. The roll-up numbers here, without gaps,
-- what it takes from record_log; only the newest rows are kept. (The numbers of record_log do not have the order in which
-- its rows are committed.)
CREATE TABLE settled_log (
  seq BIGINT PRIMARY KEY,
  call_id BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
