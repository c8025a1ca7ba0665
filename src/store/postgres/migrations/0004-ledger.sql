-- The operations of calls: hold, extend, checkpoint, settle, record. They do what ledger-operations.ts does on SQLite; a
-- test compares both with the same random operations.
--
-- A process sends many operations in one call of ledger_batch, which is one transaction: locks are held while it runs and
-- commits, and never while data is on the network. Operations of most calls are done for all calls together; the others
-- (money is short, there is a budget, an idempotency key …) one by one.

-- The period of a budget in UTC: days since 1970, months since year 0, or always 0 for `total`.
CREATE FUNCTION budget_period(span TEXT, now_ms BIGINT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE span WHEN 'total' THEN 0 WHEN 'day' THEN now_ms / 86400000 ELSE
    CAST(extract(year FROM timestamp 'epoch' + now_ms * interval '1 millisecond') * 12
      + extract(month FROM timestamp 'epoch' + now_ms * interval '1 millisecond') - 1 AS BIGINT) END
$$;

-- The rows of holds and of budgets must agree: a budget counts the holds of its key or account. So a budget that is made
-- while calls hold money waits for the batch that has locked the account, and counts the holds after it.
CREATE FUNCTION count_holds_of_budget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account
    WHERE id = coalesce((SELECT account_id FROM api_key WHERE id = NEW.scope_id), NEW.scope_id) FOR NO KEY UPDATE;
  SELECT coalesce(sum(amount), 0) INTO NEW.held FROM hold WHERE key_id = NEW.scope_id OR account_id = NEW.scope_id;
  NEW.ceiling := greatest(NEW.cap, NEW.spent + NEW.held);
  RETURN NEW;
END $$;
CREATE TRIGGER budget_counts_holds BEFORE INSERT ON budget FOR EACH ROW EXECUTE FUNCTION count_holds_of_budget();

-- What the budgets of a key and its account have left: the smallest amount and its name. Null without budgets. Starts
-- the periods of budgets whose last one is over, unless the clock went back.
CREATE FUNCTION budget_room(the_key BIGINT, the_account BIGINT, now_ms BIGINT, OUT available BIGINT, OUT name TEXT)
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE budget b SET spent = 0, period = budget_period(b.span, now_ms), ceiling = greatest(b.cap, b.held)
    WHERE b.scope_id IN (the_key, the_account) AND b.period < budget_period(b.span, now_ms);
  SELECT b.cap - b.spent - b.held, CASE b.scope_id WHEN the_key THEN 'key, ' ELSE 'account, ' END || b.span
    INTO available, name FROM budget b WHERE b.scope_id IN (the_key, the_account)
    ORDER BY 1, b.scope_id <> the_key, b.span COLLATE "C" LIMIT 1;
END $$;

CREATE TYPE ledger_settle AS (
  -- The record, with the cost of the call in `cost`.
  row_of_record public.record,
  -- What becomes of the idempotency key of the call: 'release', 'finish', or null.
  claim TEXT,
  -- The answer to store for the key, sealed, in base64. Null in the JSON of a batch (see ledger_batch).
  sealed TEXT
);

-- Returns what was charged and what was short. `told` is the result, if it is not that the cost was charged.
CREATE FUNCTION settle_one(
  s ledger_settle, now_ms BIGINT, OUT charged BIGINT, OUT short BIGINT, OUT told JSON
) LANGUAGE plpgsql AS $$
DECLARE
  rec public.record := s.row_of_record;
  h hold;
  payer account;
  room BIGINT;
  budget_left BIGINT;
BEGIN
  charged := 0;
  short := 0;
  DELETE FROM hold WHERE call_id = rec.call_id RETURNING * INTO h;
  IF NOT FOUND THEN
    -- Without a hold nothing is charged: the call was settled before, or it was never held.
    rec.cost := 0;
    rec.shortfall := 0;
    rec.held := 0;
    INSERT INTO record SELECT (rec).* ON CONFLICT (call_id) DO NOTHING;
    IF FOUND THEN
      told := json_build_array(rec.call_id, 'settled', '0', '0');
    ELSE
      -- With what was settled: the process that repeats a settle can see whether it was its own.
      SELECT json_build_array(rec.call_id, 'exists', r.outcome, CAST(r.cost AS TEXT), CAST(r.shortfall AS TEXT))
        INTO told FROM record r WHERE r.call_id = rec.call_id;
    END IF;
  ELSE
    charged := rec.cost;
    IF rec.cost > h.amount THEN
      -- A cost above the hold takes what the account and its budgets have left.
      SELECT * INTO payer FROM account WHERE id = h.account_id FOR NO KEY UPDATE;
      SELECT available INTO budget_left FROM budget_room(h.key_id, h.account_id, now_ms);
      room := CASE payer.kind WHEN 'postpaid' THEN rec.cost ELSE payer.balance + payer.credit_limit - payer.held END;
      room := greatest(least(room, budget_left), 0);
      -- Not as a sum: both may be near the end of the range of BIGINT.
      IF rec.cost - h.amount > room THEN
        charged := h.amount + room;
      END IF;
    END IF;
    short := rec.cost - charged;
    rec.cost := charged;
    rec.shortfall := short;
    rec.held := h.amount;
    -- A call with a hold has no record: else this fails, and with it the batch.
    INSERT INTO record SELECT (rec).*;
    UPDATE account SET held = held - h.amount, balance = balance - charged WHERE id = h.account_id;
    PERFORM budget_room(h.key_id, h.account_id, now_ms);
    UPDATE budget SET held = held - h.amount, spent = spent + charged WHERE scope_id IN (h.key_id, h.account_id);
    IF charged > 0 THEN
      INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
        VALUES (rec.call_id, 'charge', h.account_id, 1, charged, now_ms);
    END IF;
    IF short > 0 THEN
      INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
        VALUES (rec.call_id, 'shortfall', 3, 1, short, now_ms);
      told := json_build_array(rec.call_id, 'settled', CAST(charged AS TEXT), CAST(short AS TEXT));
    END IF;
    IF s.claim = 'finish' THEN
      UPDATE idempotency SET done = 1 WHERE call_id = rec.call_id;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'a call that stores its answer must have claimed a key';
      END IF;
      IF s.sealed IS NOT NULL THEN
        INSERT INTO kept_answer VALUES (rec.call_id, decode(s.sealed, 'base64'));
      END IF;
    END IF;
  END IF;
  -- A repeated settle releases the key too: the caller has got an error and may try again.
  IF s.claim = 'release' THEN
    DELETE FROM idempotency WHERE call_id = rec.call_id;
    DELETE FROM kept_answer WHERE call_id = rec.call_id;
  END IF;
END $$;

CREATE TYPE ledger_extension AS (call_id BIGINT, amount BIGINT, least BIGINT, held BIGINT);

CREATE FUNCTION extend_one(e ledger_extension, now_ms BIGINT) RETURNS JSON LANGUAGE plpgsql AS $$
DECLARE
  h hold;
  payer account;
  available BIGINT;
  budget_left BIGINT;
  budget_name TEXT;
  granted BIGINT := e.amount;
BEGIN
  SELECT * INTO h FROM hold WHERE call_id = e.call_id;
  IF NOT FOUND THEN
    RETURN json_build_array(e.call_id, 'settled');
  END IF;
  -- If the hold is more than the process knows, an earlier extension whose confirmation was lost has succeeded.
  IF h.amount > e.held THEN
    RETURN json_build_array(e.call_id, 'extended', CAST(h.amount - e.held AS TEXT));
  END IF;
  SELECT * INTO payer FROM account WHERE id = h.account_id FOR NO KEY UPDATE;
  available := payer.balance + payer.credit_limit - payer.held;
  IF payer.frozen_ms IS NOT NULL THEN
    RETURN json_build_array(e.call_id, 'account_frozen');
  END IF;
  SELECT b.available, b.name INTO budget_left, budget_name FROM budget_room(h.key_id, h.account_id, now_ms) b;
  IF budget_left < e.least THEN
    RETURN json_build_array(e.call_id, 'budget_too_low', CAST(budget_left AS TEXT), budget_name);
  END IF;
  IF payer.kind <> 'postpaid' AND available < e.least THEN
    RETURN json_build_array(e.call_id, 'balance_too_low', CAST(available AS TEXT));
  END IF;
  -- No more than a twentieth of what is left, and no less than the least.
  IF payer.kind <> 'postpaid' AND granted > available / 20 THEN
    granted := greatest(available / 20, e.least);
  END IF;
  IF granted > budget_left / 20 THEN
    granted := greatest(budget_left / 20, e.least);
  END IF;
  IF granted > 2305843009213693952 - payer.held THEN
    RETURN json_build_array(e.call_id, 'balance_too_low', CAST(available AS TEXT));
  END IF;
  UPDATE account SET held = held + granted WHERE id = h.account_id;
  UPDATE budget SET held = held + granted WHERE scope_id IN (h.key_id, h.account_id);
  UPDATE hold SET amount = amount + granted WHERE call_id = e.call_id;
  RETURN json_build_array(e.call_id, 'extended', CAST(granted AS TEXT));
END $$;

CREATE TYPE ledger_hold AS (
  call_id BIGINT, kind TEXT, account_id BIGINT, key_id BIGINT, amount BIGINT, wants BIGINT, least BIGINT, draft TEXT,
  -- The idempotency key, and the hash of the request in hex.
  claim_name TEXT, fingerprint TEXT,
  -- What the process knew when it admitted the call: the versions of the key and its account, and of the rules and
  -- prices, each as a sum. They only grow, so the sums are equal only if all of them are. Null: not compared.
  key_version BIGINT, revision BIGINT
);

-- Why a hold is not accepted although the process has admitted the call; null if it is accepted. `rules` is the current
-- revision.
CREATE FUNCTION change_since(w ledger_hold, rules BIGINT, now_ms BIGINT) RETURNS TEXT LANGUAGE sql AS $$
  SELECT CASE
    WHEN w.key_version IS NOT NULL AND k.version IS DISTINCT FROM w.key_version THEN 'key_changed'
    WHEN w.key_version IS NOT NULL AND k.expires_ms <= now_ms THEN 'key_expired'
    WHEN w.revision <> rules THEN 'rules_changed' END
  FROM (SELECT 1) one LEFT JOIN LATERAL (SELECT k.version + a.version AS version, k.expires_ms
    FROM api_key k CROSS JOIN LATERAL (SELECT version FROM account WHERE id = k.account_id LIMIT 1) a
    WHERE k.id = w.key_id LIMIT 1) k ON true
$$;

-- Returns null if the amount is held as it was asked for.
CREATE FUNCTION hold_one(w ledger_hold, rules BIGINT, my_slot BIGINT, my_epoch BIGINT, now_ms BIGINT) RETURNS JSON
LANGUAGE plpgsql AS $$
DECLARE
  change TEXT := change_since(w, rules, now_ms);
  payer account;
  available BIGINT;
  budget_left BIGINT;
  budget_name TEXT;
  claimed idempotency;
  extra BIGINT;
  amount BIGINT := w.amount;
BEGIN
  IF change IS NOT NULL THEN
    -- An earlier try, whose confirmation was lost, may have been accepted before the change. Nothing has been sent yet.
    PERFORM cancel_hold(w.call_id);
    RETURN json_build_array(w.call_id, change);
  END IF;
  -- The process repeats a hold whose confirmation was lost.
  SELECT h.amount INTO amount FROM hold h WHERE h.call_id = w.call_id AND h.slot = my_slot AND h.epoch = my_epoch;
  IF FOUND THEN
    RETURN CASE WHEN w.least IS NOT NULL THEN json_build_array(w.call_id, 'held', CAST(amount AS TEXT)) END;
  END IF;
  SELECT * INTO payer FROM account WHERE id = w.account_id FOR NO KEY UPDATE;
  available := payer.balance + payer.credit_limit - payer.held;
  SELECT b.available, b.name INTO budget_left, budget_name FROM budget_room(w.key_id, w.account_id, now_ms) b;

  amount := w.amount;
  IF w.least IS NOT NULL THEN
    -- Between the least and the amount: the least and a twentieth of what is left after it.
    extra := w.amount - w.least;
    IF payer.kind <> 'postpaid' THEN
      extra := least(extra, (available - w.least) / 20);
    END IF;
    extra := least(extra, (budget_left - w.least) / 20);
    IF (payer.kind <> 'postpaid' AND available < w.least) OR budget_left < w.least THEN
      extra := 0;
    END IF;
    amount := w.least + extra;
  END IF;

  IF w.claim_name IS NOT NULL THEN
    SELECT * INTO claimed FROM idempotency WHERE key_id = w.key_id AND name = w.claim_name;
    IF FOUND THEN
      -- An expired key is free again: the id of its call tells its time (ids.ts).
      IF claimed.done = 1 AND claimed.call_id < greatest(now_ms - 86400000 - 1767225600000, 0) * 8192 THEN
        DELETE FROM idempotency WHERE call_id = claimed.call_id;
        DELETE FROM kept_answer WHERE call_id = claimed.call_id;
      ELSIF claimed.fingerprint <> decode(w.fingerprint, 'hex') THEN
        RETURN json_build_array(w.call_id, 'other_body', claimed.call_id);
      ELSE
        RETURN json_build_array(w.call_id, CASE claimed.done WHEN 1 THEN 'finished' ELSE 'running' END, claimed.call_id);
      END IF;
    END IF;
  END IF;

  IF amount > 0 AND budget_left < amount THEN
    RETURN json_build_array(w.call_id, 'budget_too_low', CAST(budget_left AS TEXT), budget_name);
  END IF;
  IF amount > 0 AND budget_left < w.wants THEN
    RETURN json_build_array(w.call_id, 'hold_less', CAST(budget_left AS TEXT));
  END IF;
  IF payer.id IS NULL THEN
    RETURN json_build_array(w.call_id, 'account_unknown');
  END IF;
  IF payer.frozen_ms IS NOT NULL THEN
    RETURN json_build_array(w.call_id, 'account_frozen');
  END IF;
  IF amount > 2305843009213693952 - payer.held
      OR (payer.kind <> 'postpaid' AND available < greatest(amount, w.wants)) THEN
    RETURN json_build_array(w.call_id, CASE WHEN available < amount THEN 'balance_too_low' ELSE 'hold_less' END,
      CAST(available AS TEXT));
  END IF;

  UPDATE account SET held = held + amount WHERE id = w.account_id;
  UPDATE budget SET held = held + amount WHERE scope_id IN (w.key_id, w.account_id);
  -- A call that was settled before its hold arrived must not be held: the hold would stay open for ever.
  INSERT INTO hold (call_id, kind, account_id, key_id, amount, draft, slot, epoch)
    SELECT w.call_id, w.kind, w.account_id, w.key_id, amount, w.draft, my_slot, my_epoch
    WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.call_id = w.call_id);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a finished call must not be held';
  END IF;
  IF w.claim_name IS NOT NULL THEN
    INSERT INTO idempotency (key_id, name, fingerprint, call_id)
      VALUES (w.key_id, w.claim_name, decode(w.fingerprint, 'hex'), w.call_id);
  END IF;
  RETURN CASE WHEN w.least IS NOT NULL THEN json_build_array(w.call_id, 'held', CAST(amount AS TEXT)) END;
END $$;

-- Removes a hold whose process has given up waiting for it: the call was refused, and there is no record of it.
CREATE FUNCTION cancel_hold(the_call BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
  h hold;
BEGIN
  DELETE FROM hold WHERE call_id = the_call RETURNING * INTO h;
  IF FOUND THEN
    UPDATE account SET held = held - h.amount WHERE id = h.account_id;
    UPDATE budget SET held = held - h.amount WHERE scope_id IN (h.key_id, h.account_id);
    DELETE FROM idempotency WHERE call_id = the_call;
    INSERT INTO cancelled_hold VALUES (the_call, h.account_id);
    DELETE FROM cancelled_hold WHERE call_id IN (SELECT call_id FROM cancelled_hold
      WHERE call_id < the_call - 604800000 * CAST(8192 AS BIGINT) ORDER BY call_id LIMIT 2 FOR UPDATE SKIP LOCKED);
  END IF;
END $$;

-- Runs a batch of operations of one process. `jobs` has a list for each kind of operation, and `calls` are the calls of
-- all of them; a call may have only one operation in a batch, so that the order of kinds below is no other order than
-- that in which its process has sent its operations. `accounts` are those of the holds. Returns a JSON array of the
-- results that are not the usual ones, each as [call, result, …].
--
-- `answers` are the answers to store for idempotency keys, sealed, in base64, and `answered` are their calls. They may
-- have megabytes, and the JSON is read many times, so they are not in it.
--
-- The settings: one plan for each statement, made once, that fits tables of every size. A plan that reads or hashes a
-- whole table may look good while the table is small, and stays in use when it has grown.
CREATE FUNCTION ledger_batch(
  my_slot BIGINT, my_epoch BIGINT, calls BIGINT[], accounts BIGINT[], jobs JSON, answered BIGINT[], answers TEXT[],
  test_ms BIGINT
) RETURNS TEXT LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET lock_timeout = '3s'
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  now_ms BIGINT;
  told JSON[] := '{}';
  more JSON[];
  finished BIGINT[];
  revenue NUMERIC := 0;
  shortfalls NUMERIC := 0;
  settle ledger_settle;
  extension ledger_extension;
  wanted ledger_hold;
  outcome RECORD;
  result JSON;
  rules BIGINT;
BEGIN
  -- Whoever fences this process waits for this batch, or this batch waits and fails.
  PERFORM 1 FROM process WHERE slot = my_slot AND epoch = my_epoch AND is_dead = 0 FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this process is fenced' USING ERRCODE = 'WR001';
  END IF;
  IF cardinality(calls) <> (SELECT count(DISTINCT c) FROM unnest(calls) c) THEN
    RAISE EXCEPTION 'a call has two operations in one batch';
  END IF;

  -- All accounts first, in the order of their ids, so that two batches never wait for each other. From here on nobody
  -- else changes these accounts, the budgets of their keys, their holds or their idempotency keys.
  PERFORM 1 FROM account WHERE id = ANY (accounts || ARRAY(
      SELECT h.account_id FROM unnest(calls) c CROSS JOIN LATERAL (SELECT account_id FROM hold WHERE call_id = c LIMIT 1) h
    )) ORDER BY id FOR NO KEY UPDATE;
  now_ms := coalesce(test_ms, database_ms());

  -- Holds that their process does not want any more.
  PERFORM cancel_hold(CAST(value AS BIGINT)) FROM json_array_elements_text(jobs -> 'cancels');

  -- Settles of calls that have a hold which covers the cost, no budget and no idempotency key.
  WITH plain AS MATERIALIZED (
    SELECT r.*, h.account_id AS payer_id, h.amount AS reserved
    FROM json_populate_recordset(NULL::ledger_settle, jobs -> 'settles') s
      CROSS JOIN LATERAL (SELECT (s.row_of_record).*) r
      CROSS JOIN LATERAL (SELECT account_id, key_id, amount FROM hold WHERE call_id = r.call_id LIMIT 1) h
      LEFT JOIN LATERAL (SELECT 1 AS one FROM budget WHERE scope_id IN (h.key_id, h.account_id) LIMIT 1) b ON true
    WHERE s.claim IS NULL AND r.cost <= h.amount AND b.one IS NULL
  ), ended AS (
    DELETE FROM hold WHERE call_id = ANY (ARRAY(SELECT call_id FROM plain))
  ), paid AS (
    UPDATE account a SET held = a.held - p.reserved, balance = a.balance - p.cost
    FROM (SELECT payer_id, CAST(sum(reserved) AS BIGINT) AS reserved, CAST(sum(cost) AS BIGINT) AS cost
          FROM plain GROUP BY payer_id) p
    WHERE a.id = p.payer_id
  ), moved AS (
    INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
      SELECT call_id, 'charge', payer_id, 1, cost, now_ms FROM plain WHERE cost > 0
  ), written AS (
    INSERT INTO record
      SELECT call_id, key_id, account_id, dialect, provider, model, channel, status, error, outcome, rule, usage_source,
        streamed, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost, 0, reserved,
        price_version, lines, attempts, timings, first_ms, duration_ms, end_user, tags, loss, came_hash, went_hash, asked,
        why FROM plain
  )
  SELECT coalesce(array_agg(call_id), '{}'), coalesce(sum(cost), 0) INTO finished, revenue FROM plain;

  -- The other settles. Those that cost more than their hold come last: they take what the others have released.
  FOR settle IN
      SELECT s.row_of_record, s.claim, s.sealed
      FROM json_populate_recordset(NULL::ledger_settle, jobs -> 'settles') WITH ORDINALITY
        AS s (row_of_record, claim, sealed, place)
        LEFT JOIN LATERAL (SELECT amount FROM hold WHERE call_id = (s.row_of_record).call_id LIMIT 1) h ON true
      WHERE (s.row_of_record).call_id <> ALL (finished)
      ORDER BY coalesce((s.row_of_record).cost > h.amount, false), s.place LOOP
    settle.sealed := answers[array_position(answered, (settle.row_of_record).call_id)];
    outcome := settle_one(settle, now_ms);
    revenue := revenue + outcome.charged + outcome.short;
    shortfalls := shortfalls + outcome.short;
    IF outcome.told IS NOT NULL THEN
      told := told || outcome.told;
    END IF;
  END LOOP;

  FOR extension IN SELECT e.* FROM json_populate_recordset(NULL::ledger_extension, jobs -> 'extends') e LOOP
    told := told || extend_one(extension, now_ms);
  END LOOP;

  -- Checkpoints: what has been delivered so far, so that it is charged also when the process dies.
  WITH noted AS (
    UPDATE hold h SET used = least(h.amount, c.used),
      draft = CAST(jsonb_strip_nulls(CAST(h.draft AS JSONB) || c.known) AS TEXT)
    FROM json_to_recordset(jobs -> 'checkpoints') AS c (call_id BIGINT, used BIGINT, known JSONB)
    WHERE h.call_id = c.call_id RETURNING h.call_id
  )
  SELECT array_agg(json_build_array(c.call_id, 'unknown')) INTO more
    FROM json_to_recordset(jobs -> 'checkpoints') AS c (call_id BIGINT)
    WHERE c.call_id <> ALL (ARRAY(SELECT call_id FROM noted));
  told := told || more;

  -- Records of calls that had no hold.
  WITH written AS (
    INSERT INTO record SELECT r.* FROM json_populate_recordset(NULL::public.record, jobs -> 'records') r
      ON CONFLICT (call_id) DO NOTHING RETURNING call_id
  )
  SELECT array_agg(json_build_array(r.call_id, 'exists', o.outcome)) INTO more
    FROM json_to_recordset(jobs -> 'records') AS r (call_id BIGINT)
      LEFT JOIN LATERAL (SELECT outcome FROM record WHERE call_id = r.call_id LIMIT 1) o ON true
    WHERE r.call_id <> ALL (ARRAY(SELECT call_id FROM written));
  told := told || more;

  IF jobs -> 'holds' IS NULL THEN
    rules := 0;
  ELSE
    SELECT CAST(sum(number) AS BIGINT) INTO rules FROM revision WHERE name IN ('rules', 'prices');
  END IF;
  -- Holds last, so that the money of calls that end in this batch is available to them. First those of accounts whose
  -- holds are all simple and fit together, whatever their order: then each of them is held as it was asked for.
  WITH asked AS MATERIALIZED (
    SELECT w.*, a.kind AS payer_kind, a.held AS payer_held, a.available,
      w.least IS NULL AND w.claim_name IS NULL AND a.kind IS NOT NULL AND a.frozen_ms IS NULL AND b.one IS NULL
        AND r.one IS NULL AND h.one IS NULL AND coalesce(w.revision = rules, true)
        AND (w.key_version IS NULL OR coalesce(k.version + a.version = w.key_version AND
          (k.expires_ms IS NULL OR k.expires_ms > now_ms), false)) AS is_simple
    FROM json_populate_recordset(NULL::ledger_hold, jobs -> 'holds') w
      LEFT JOIN LATERAL (SELECT kind, held, frozen_ms, version, balance + credit_limit - held AS available
        FROM account WHERE id = w.account_id LIMIT 1) a ON true
      LEFT JOIN LATERAL (SELECT version, expires_ms FROM api_key
        WHERE id = w.key_id AND w.key_version IS NOT NULL LIMIT 1) k ON true
      LEFT JOIN LATERAL (SELECT 1 AS one FROM budget WHERE scope_id IN (w.key_id, w.account_id) LIMIT 1) b ON true
      LEFT JOIN LATERAL (SELECT 1 AS one FROM record WHERE call_id = w.call_id LIMIT 1) r ON true
      LEFT JOIN LATERAL (SELECT 1 AS one FROM hold WHERE call_id = w.call_id LIMIT 1) h ON true
  ), judged AS MATERIALIZED (
    SELECT q.*, bool_and(is_simple) OVER of_account
        AND sum(amount) OVER of_account <= 2305843009213693952 - payer_held
        AND (payer_kind = 'postpaid' OR available >= sum(amount) OVER of_account + max(wants) OVER of_account) AS fits
    FROM asked q WINDOW of_account AS (PARTITION BY account_id)
  ), reserved AS (
    UPDATE account a SET held = a.held + j.amount
    FROM (SELECT account_id, CAST(sum(amount) AS BIGINT) AS amount FROM judged WHERE fits GROUP BY account_id) j
    WHERE a.id = j.account_id
  ), made AS (
    INSERT INTO hold (call_id, kind, account_id, key_id, amount, draft, slot, epoch)
      SELECT call_id, kind, account_id, key_id, amount, draft, my_slot, my_epoch FROM judged WHERE fits
  )
  SELECT coalesce(array_agg(call_id), '{}') INTO finished FROM judged WHERE fits;

  FOR wanted IN SELECT w.* FROM json_populate_recordset(NULL::ledger_hold, jobs -> 'holds') w
      WHERE w.call_id <> ALL (finished) LOOP
    result := hold_one(wanted, rules, my_slot, my_epoch, now_ms);
    IF result IS NOT NULL THEN
      told := told || result;
    END IF;
  END LOOP;

  -- The operator's own accounts: all processes credit them, so each has a part of its own.
  IF revenue > 0 THEN
    INSERT INTO operator_part (account_id, slot, balance) VALUES (1, my_slot, CAST(revenue AS BIGINT))
      ON CONFLICT (account_id, slot) DO UPDATE SET balance = operator_part.balance + excluded.balance;
  END IF;
  IF shortfalls > 0 THEN
    INSERT INTO operator_part (account_id, slot, balance) VALUES (3, my_slot, CAST(-shortfalls AS BIGINT))
      ON CONFLICT (account_id, slot) DO UPDATE SET balance = operator_part.balance + excluded.balance;
  END IF;
  RETURN array_to_json(told);
END $$;
