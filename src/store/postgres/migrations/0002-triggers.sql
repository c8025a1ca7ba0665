-- The triggers of SQLite, by hand. Names are the same (a test compares them).

-- A change of what people edit raises the version of the row.
CREATE FUNCTION raise_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$;

CREATE TRIGGER tier_version BEFORE UPDATE OF qpm, price_per_mille, account_qpm, account_concurrency ON tier
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER limit_rule_version BEFORE UPDATE OF amount ON limit_rule
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER model_route_version BEFORE UPDATE OF policy, members ON model_route
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER setting_version BEFORE UPDATE OF value ON setting
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER person_version BEFORE UPDATE OF email, name, role, disabled, removed_ms ON person
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER member_version BEFORE UPDATE OF rank ON member
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER api_key_version BEFORE UPDATE OF name, suffix, tier, qpm, strict_cap, keeps_bodies, strict, explains,
    allows, denies, requires, endpoints, addresses, expires_ms, disabled_ms, revoked_ms, old_until_ms ON api_key
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER account_version BEFORE UPDATE OF name, kind, tier, credit_limit, keeps_bodies, frozen_ms, allows, denies
    ON account
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER budget_version BEFORE UPDATE OF cap ON budget
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER channel_version BEFORE UPDATE OF changed_ms ON channel
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER provider_version BEFORE UPDATE OF changed_ms ON provider
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER webhook_version BEFORE UPDATE OF url, events, secret, disabled ON webhook
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER balance_alert_version BEFORE UPDATE OF threshold ON balance_alert
  FOR EACH ROW EXECUTE FUNCTION raise_version();
CREATE TRIGGER service_token_version BEFORE UPDATE OF name, suffix, expires_ms, revoked_ms, old_until_ms
    ON service_token
  FOR EACH ROW EXECUTE FUNCTION raise_version();

-- Rows that are never changed and never deleted. TRUNCATE fires only triggers of statements.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0];
END $$;

CREATE TRIGGER transfer_is_final BEFORE UPDATE ON transfer
  FOR EACH ROW EXECUTE FUNCTION refuse_change('a transfer is final');
CREATE TRIGGER transfer_is_kept BEFORE DELETE ON transfer
  FOR EACH ROW EXECUTE FUNCTION refuse_change('a transfer is kept');
CREATE TRIGGER transfer_is_not_truncated BEFORE TRUNCATE ON transfer
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('a transfer is kept');
CREATE TRIGGER price_is_final BEFORE UPDATE ON price
  FOR EACH ROW EXECUTE FUNCTION refuse_change('a price is final');
CREATE TRIGGER price_is_kept BEFORE DELETE ON price
  FOR EACH ROW EXECUTE FUNCTION refuse_change('a price is kept');
CREATE TRIGGER price_is_not_truncated BEFORE TRUNCATE ON price
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('a price is kept');
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit
  FOR EACH ROW EXECUTE FUNCTION refuse_change('an audit row is final');
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
  FOR EACH ROW EXECUTE FUNCTION refuse_change('an audit row is kept');
CREATE TRIGGER audit_is_not_truncated BEFORE TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('an audit row is kept');

-- Writes the deliveries of an event. While a webhook waits, new deliveries wait with the others.
CREATE FUNCTION tell_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook SET dropped = dropped + 1
    WHERE disabled = 0 AND (account_id IS NULL OR account_id = NEW.account_id)
      AND strpos(',' || events || ',', ',' || NEW.name || ',') > 0
      AND (SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = webhook.id AND d.due_ms IS NOT NULL) >= 1000;
  INSERT INTO webhook_delivery (webhook_id, event, account_id, data, made_ms, due_ms)
    SELECT w.id, NEW.name, NEW.account_id, NEW.data, CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT),
      coalesce((SELECT min(d.due_ms) FROM webhook_delivery d
        WHERE d.webhook_id = w.id AND d.due_ms IS NOT NULL AND d.event <> 'webhook.test'), 0)
    FROM webhook w
    WHERE w.disabled = 0 AND (w.account_id IS NULL OR w.account_id = NEW.account_id)
      AND strpos(',' || w.events || ',', ',' || NEW.name || ',') > 0
      AND (SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.due_ms IS NOT NULL) < 1000
    ORDER BY w.id
    -- A webhook that is being removed gets no delivery. Without the lock, the key between both tables would be broken,
    -- and with it the batch of calls that has told the event.
    FOR KEY SHARE OF w;
  RETURN NEW;
END $$;
CREATE TRIGGER event_is_told INSTEAD OF INSERT ON event FOR EACH ROW EXECUTE FUNCTION tell_event();

CREATE FUNCTION note_balance_level() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE balance_alert b SET level = v.level FROM balance_level v
    WHERE b.account_id = NEW.id AND v.account_id = NEW.id AND b.level <> v.level;
  RETURN NULL;
END $$;
CREATE TRIGGER account_balance AFTER UPDATE OF balance, credit_limit ON account
  FOR EACH ROW EXECUTE FUNCTION note_balance_level();

-- json_build_object would write spaces, which SQLite does not: receivers of webhooks get the same bytes from both.
CREATE FUNCTION tell_balance_level() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  facts TEXT;
BEGIN
  SELECT '{"balance":"' || balance || '","credit_limit":"' || credit_limit || '","threshold":"' || threshold || '"}'
    INTO facts FROM balance_level WHERE account_id = NEW.account_id;
  IF OLD.level = 0 THEN
    INSERT INTO event VALUES ('balance.low', NEW.account_id, facts);
  END IF;
  IF NEW.level = 2 THEN
    INSERT INTO event VALUES ('balance.empty', NEW.account_id, facts);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER balance_alert_crossed AFTER UPDATE OF level ON balance_alert
  FOR EACH ROW WHEN (NEW.level > OLD.level) EXECUTE FUNCTION tell_balance_level();

CREATE FUNCTION tell_budget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event SELECT 'budget.low', coalesce(k.account_id, NEW.scope_id),
      '{"key":' || coalesce(CAST(k.id AS TEXT), 'null') || ',"span":"' || NEW.span || '","cap":"' || NEW.cap
        || '","spent":"' || NEW.spent || '"}'
    FROM (SELECT 1) one LEFT JOIN api_key k ON k.id = NEW.scope_id;
  RETURN NULL;
END $$;
-- As numeric, because ten times an amount may be more than a BIGINT holds.
CREATE TRIGGER budget_low AFTER UPDATE OF spent, cap ON budget
  FOR EACH ROW WHEN (NEW.spent::numeric * 10 >= NEW.cap::numeric * 9 AND OLD.spent::numeric * 10 < OLD.cap::numeric * 9)
  EXECUTE FUNCTION tell_budget();

CREATE FUNCTION tell_key_revoked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event VALUES ('key.revoked', NEW.account_id, '{"key":' || NEW.id || ',"name":' || to_json(NEW.name) || '}');
  RETURN NULL;
END $$;
CREATE TRIGGER key_revoked AFTER UPDATE OF revoked_ms ON api_key
  FOR EACH ROW WHEN (OLD.revoked_ms IS NULL AND NEW.revoked_ms IS NOT NULL) EXECUTE FUNCTION tell_key_revoked();

CREATE FUNCTION tell_account_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event VALUES ('account.frozen', NEW.id, '{}');
  RETURN NULL;
END $$;
CREATE TRIGGER account_frozen AFTER UPDATE OF frozen_ms ON account
  FOR EACH ROW WHEN (OLD.frozen_ms IS NULL AND NEW.frozen_ms IS NOT NULL) EXECUTE FUNCTION tell_account_frozen();

-- One insert for all records of a statement.
CREATE FUNCTION log_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO record_log (call_id) SELECT call_id FROM added;
  RETURN NULL;
END $$;
CREATE TRIGGER record_is_logged AFTER INSERT ON record REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION log_records();

CREATE FUNCTION log_refunds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO record_log (call_id) SELECT -ref FROM added WHERE kind = 'refund';
  RETURN NULL;
END $$;
CREATE TRIGGER refund_is_logged AFTER INSERT ON transfer REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION log_refunds();
