-- The numbers by which processes see that the configuration has changed. Every change raises the number of its group in
-- its own transaction, and notifies the listening processes when it commits. Calls raise no number: a notification in
-- the transaction of a batch would make the commits of all processes wait for each other.
CREATE TABLE revision (
  name TEXT COLLATE "C" PRIMARY KEY,
  number BIGINT NOT NULL DEFAULT 1
) WITH (fillfactor = 50);
INSERT INTO revision (name) VALUES ('keys'), ('rules'), ('prices'), ('site');

-- The arguments of a trigger are its groups.
CREATE FUNCTION raise_revision() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  grp TEXT;
  raised BIGINT;
BEGIN
  FOREACH grp IN ARRAY TG_ARGV LOOP
    UPDATE revision SET number = number + 1 WHERE name = grp RETURNING number INTO raised;
    PERFORM pg_notify('weir', grp || ' ' || raised);
  END LOOP;
  RETURN NULL;
END $$;

-- A new digest of the same key, made with a newer pepper, changes nothing that a process knows of the key.
CREATE TRIGGER api_key_revision AFTER INSERT OR DELETE OR UPDATE OF name, suffix, tier, qpm, strict_cap, keeps_bodies,
    strict, explains, allows, denies, requires, endpoints, addresses, expires_ms, disabled_ms, revoked_ms,
    old_until_ms ON api_key
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('keys');
-- Keys that members have made share the limits and the required tags of an operator's key: they change with it.
CREATE TRIGGER api_key_shared_revision AFTER UPDATE OF qpm, requires ON api_key
  FOR EACH ROW WHEN (NEW.qpm IS DISTINCT FROM OLD.qpm OR NEW.requires IS DISTINCT FROM OLD.requires)
  EXECUTE FUNCTION raise_revision('rules');
CREATE TRIGGER api_key_new_shared_revision AFTER INSERT ON api_key
  FOR EACH ROW WHEN (NEW.qpm IS NOT NULL OR NEW.requires IS NOT NULL) EXECUTE FUNCTION raise_revision('rules');

-- What a process knows of an account, with each of its keys. Calls change the balance and what is held, and no other
-- column.
CREATE TRIGGER account_revision AFTER UPDATE OF name, kind, tier, credit_limit, keeps_bodies, frozen_ms, allows, denies
    ON account
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('keys');

-- A process knows the limits and the price of a tier with each of its keys.
CREATE TRIGGER tier_revision AFTER INSERT OR UPDATE OR DELETE ON tier
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('rules', 'keys');
CREATE TRIGGER limit_rule_revision AFTER INSERT OR UPDATE OR DELETE ON limit_rule
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('rules', 'keys');
CREATE TRIGGER model_route_revision AFTER INSERT OR UPDATE OR DELETE ON model_route
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('rules');
CREATE TRIGGER channel_revision AFTER INSERT OR UPDATE OR DELETE ON channel
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('rules');
CREATE TRIGGER provider_revision AFTER INSERT OR UPDATE OR DELETE ON provider
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('rules');
CREATE TRIGGER price_revision AFTER INSERT ON price
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('prices');
CREATE TRIGGER setting_revision AFTER INSERT OR UPDATE OR DELETE ON setting
  FOR EACH STATEMENT EXECUTE FUNCTION raise_revision('site');

-- Returns when each batch that was running has ended. A batch compares the versions of its holds (ledger_batch) after it
-- has locked the row of its process. So after a change has been committed, and this procedure has returned, no hold of
-- any process is accepted that was admitted before the change. It waits for one process after the other and keeps no
-- lock, so that a slow batch delays nobody else.
CREATE PROCEDURE await_batches() LANGUAGE plpgsql AS $$
DECLARE
  one BIGINT;
BEGIN
  FOR one IN SELECT slot FROM process WHERE is_dead = 0 LOOP
    PERFORM 1 FROM process WHERE slot = one FOR UPDATE;
    COMMIT;
  END LOOP;
END $$;
