-- Codes that are taken back, prices by model; and webhooks with what they are told.

ALTER TABLE code ADD COLUMN voided_ms INTEGER CHECK (voided_ms IS NULL OR redeemed_ms IS NULL);
CREATE INDEX code_batch ON code (batch);

CREATE INDEX price_model ON price (model);

-- Without `account_id` it is told of all accounts and of the site. `events` is a comma list. `secret` is sealed.
-- `origin` is the part of `url` that may be told to everybody: what stands behind it may be a secret of its own.
-- `dropped` counts what it was not told because too much was waiting.
CREATE TABLE webhook (
  id         INTEGER PRIMARY KEY,
  account_id INTEGER REFERENCES account,
  url        TEXT NOT NULL,
  origin     TEXT NOT NULL,
  events     TEXT NOT NULL CHECK (events <> ''),
  secret     BLOB NOT NULL CHECK (length(secret) > 33),
  disabled   INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
  dropped    INTEGER NOT NULL DEFAULT 0,
  author     TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  version    INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX webhook_account ON webhook (account_id);
CREATE TRIGGER webhook_version AFTER UPDATE OF url, events, secret, disabled ON webhook BEGIN
  UPDATE webhook SET version = old.version + 1 WHERE id = new.id;
END;

-- What a webhook is to be told, written by the transaction that makes it true; kept a while once it is over. `data` is
-- JSON, with money in nano-USD and ids as numbers. `due_ms` is when it is tried next; none when it is over.
CREATE TABLE webhook_delivery (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id INTEGER NOT NULL REFERENCES webhook ON DELETE CASCADE,
  event      TEXT NOT NULL,
  account_id INTEGER,
  data       TEXT NOT NULL,
  made_ms    INTEGER NOT NULL,
  attempts   INTEGER NOT NULL DEFAULT 0,
  due_ms     INTEGER,
  delivered  INTEGER NOT NULL DEFAULT 0 CHECK (delivered IN (0, 1)),
  tried_ms   INTEGER,
  status     INTEGER,
  took_ms    INTEGER,
  error      TEXT,
  CHECK (due_ms IS NOT NULL OR tried_ms IS NOT NULL)
) STRICT;
CREATE INDEX webhook_delivery_waiting ON webhook_delivery (webhook_id, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX webhook_delivery_of ON webhook_delivery (webhook_id, id);

-- What happened, for a moment: by putting a row in here, whoever is to be told of it is told. Nothing stays in it.
CREATE VIEW event AS SELECT '' AS name, 0 AS account_id, '' AS data WHERE false;
CREATE TRIGGER event_is_told INSTEAD OF INSERT ON event BEGIN
  UPDATE webhook SET dropped = dropped + 1
    WHERE disabled = 0 AND (account_id IS NULL OR account_id = new.account_id)
      AND instr(',' || events || ',', ',' || new.name || ',') > 0
      AND (SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = webhook.id AND d.due_ms IS NOT NULL) >= 1000;
  INSERT INTO webhook_delivery (webhook_id, event, account_id, data, made_ms, due_ms)
    SELECT w.id, new.name, new.account_id, new.data, CAST(unixepoch('subsec') * 1000 AS INTEGER), 0
    FROM webhook w
    WHERE w.disabled = 0 AND (w.account_id IS NULL OR w.account_id = new.account_id)
      AND instr(',' || w.events || ',', ',' || new.name || ',') > 0
      AND (SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.due_ms IS NOT NULL) < 1000;
END;

-- When an account is to be called low. `level` is what was last told: 0 fine, 1 low, 2 empty.
CREATE TABLE balance_alert (
  account_id INTEGER PRIMARY KEY REFERENCES account,
  threshold  INTEGER NOT NULL CHECK (threshold > 0),
  level      INTEGER NOT NULL DEFAULT 0 CHECK (level IN (0, 1, 2)),
  version    INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TRIGGER balance_alert_version AFTER UPDATE OF threshold ON balance_alert BEGIN
  UPDATE balance_alert SET version = old.version + 1 WHERE account_id = new.account_id;
END;

-- Empty is less than a cent, which no call can be made with. It takes a tenth more to be well again than to be unwell,
-- so that what goes up and down around a threshold is told once.
CREATE VIEW balance_level AS
  SELECT b.account_id, a.balance, a.credit_limit, b.threshold, b.level AS told, CASE
    WHEN a.balance + a.credit_limit < 10000000 THEN 2
    WHEN b.level = 2 AND a.balance + a.credit_limit < 11000000 THEN 2
    WHEN a.balance + a.credit_limit < b.threshold THEN 1
    WHEN b.level > 0 AND a.balance + a.credit_limit < b.threshold + b.threshold / 10 THEN 1
    ELSE 0 END AS level
  FROM balance_alert b JOIN account a ON a.id = b.account_id;

CREATE TRIGGER account_balance AFTER UPDATE OF balance, credit_limit ON account
  WHEN EXISTS (SELECT 1 FROM balance_alert WHERE account_id = new.id) BEGIN
  UPDATE balance_alert SET level = (SELECT v.level FROM balance_level v WHERE v.account_id = new.id)
    WHERE account_id = new.id AND level <> (SELECT v.level FROM balance_level v WHERE v.account_id = new.id);
END;
CREATE TRIGGER balance_alert_crossed AFTER UPDATE OF level ON balance_alert WHEN new.level > old.level BEGIN
  INSERT INTO event SELECT 'balance.low', new.account_id, json_object('balance', CAST(balance AS TEXT),
    'credit_limit', CAST(credit_limit AS TEXT), 'threshold', CAST(threshold AS TEXT))
    FROM balance_level WHERE account_id = new.account_id AND old.level = 0;
  INSERT INTO event SELECT 'balance.empty', new.account_id, json_object('balance', CAST(balance AS TEXT),
    'credit_limit', CAST(credit_limit AS TEXT), 'threshold', CAST(threshold AS TEXT))
    FROM balance_level WHERE account_id = new.account_id AND new.level = 2;
END;

-- Nine tenths of a budget are spent. It only grows within its period, so this happens once in each.
CREATE TRIGGER budget_low AFTER UPDATE OF spent, cap ON budget
  WHEN new.spent * 10 >= new.cap * 9 AND old.spent * 10 < old.cap * 9 BEGIN
  INSERT INTO event SELECT 'budget.low', coalesce(k.account_id, new.scope_id), json_object('key', k.id,
      'span', new.span, 'cap', CAST(new.cap AS TEXT), 'spent', CAST(new.spent AS TEXT))
    FROM (SELECT 1) LEFT JOIN api_key k ON k.id = new.scope_id;
END;

CREATE TRIGGER key_revoked AFTER UPDATE OF revoked_ms ON api_key
  WHEN old.revoked_ms IS NULL AND new.revoked_ms IS NOT NULL BEGIN
  INSERT INTO event VALUES ('key.revoked', new.account_id, json_object('key', new.id, 'name', new.name));
END;

CREATE TRIGGER account_frozen AFTER UPDATE OF frozen_ms ON account
  WHEN old.frozen_ms IS NULL AND new.frozen_ms IS NOT NULL BEGIN
  INSERT INTO event VALUES ('account.frozen', new.id, '{}');
END;
