// Fills a database with records and their charges, over a thousand keys, two hundred models, fifty channels and the
// last three hundred days. The transfers are in balance. Indexes are created afterwards, which is many times faster.
// The table of changes stays empty, as in a database that is older than that table.
//
// fill.ts <database> <records>

import { migrate, openWriter } from '../../src/store/engine/database.ts'
import { recordIndexes } from '../../src/store/ledger/late-indexes.ts'

const [path = '', records = '10000000'] = process.argv.slice(2)

/** Like base/ids.ts: milliseconds since 2026, times 8192. */
const SPAN = 8_192
const DAYS = 300
const ACCOUNTS = 1_000

const db = openWriter(path)
migrate(db)
db.run('PRAGMA synchronous = OFF')

const rows = db.query(
  `SELECT type, name, sql FROM sqlite_schema
   WHERE type IN ('index', 'trigger') AND tbl_name IN ('record', 'transfer') AND sql IS NOT NULL`,
)
const parts = rows.all() as { type: string; name: string; sql: string }[]
for (const { type, name } of parts) db.run(`DROP ${type} `.concat(name))

const lastId = (Date.now() - Date.UTC(2026, 0, 1)) * SPAN - SPAN
const step = Math.floor((DAYS * 86_400_000 * SPAN) / Number(records))
const firstId = lastId - step * Number(records)
const PRICE = 250_200

db.transaction(() => {
  db.run(
    `WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?1)
     INSERT INTO account (id, name, kind, balance, created_ms)
     SELECT 1000 + at, 'account ' || at, 'prepaid', 0, 0 FROM n`,
    [ACCOUNTS],
  )
  // Accounts of very different sizes, as in practice: the square of an evenly distributed number.
  db.run(
    `WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?1)
     INSERT INTO record
     SELECT ?2 + at * ?3, account + 1000000, account, 'openai-chat', 'openai', 'gpt-4o-' || model,
       'openai#' || ((model + at % 2) % 50 + 1),
       CASE WHEN at % 50 = 0 THEN 502 ELSE 200 END, CASE WHEN at % 50 = 0 THEN 'upstream_unusable' END,
       CASE WHEN at % 50 = 0 THEN 'upstream_failed' ELSE 'completed' END,
       CASE WHEN at % 50 = 0 THEN 'upstream_failed' ELSE 'completed' END,
       CASE WHEN at % 50 = 0 THEN 'none' ELSE 'reported' END, at % 2, 812, at % 3 * 100, 0, 214, 0,
       CASE WHEN at % 50 = 0 THEN 0 ELSE ?4 END, 0, 1234567, 321,
       '[["input",712,"0.15"],["cacheRead",100,"0.075"],["output",214,"0.60"]]', '[["openai#1","answered",412]]',
       '{"Auth":0,"RateLimit":0,"Route":0,"Adapter":0.1,"fwd":412.3}',
       50 + (at * 7919) % 900, 100 + (at * 104729) % 9000,
       CASE WHEN at % 10 = 0 THEN 'user ' || (at % 5000) END, NULL, NULL, NULL, NULL, NULL, NULL, NULL
     FROM (SELECT at, account, (account * 37 + at % 5 * 41) % 200 AS model FROM
       (SELECT at, 1000 + (((at * 7919) % 1000) * ((at * 104729) % 1000)) / 1000 AS account FROM n))`,
    [Number(records), firstId, step, PRICE],
  )
  db.run(
    `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
     SELECT call_id, 'charge', account_id, 1, cost, 0 FROM record WHERE cost > 0`,
  )
  db.run(
    `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
     SELECT account_id, 'top_up', 4, account_id, sum(cost) + 1000000000, 0 FROM record GROUP BY account_id`,
  )
  db.run('UPDATE account SET balance = 1000000000 WHERE id IN (SELECT credit FROM transfer WHERE kind = ?1)', [
    'top_up',
  ])
  db.run("UPDATE account SET balance = (SELECT sum(amount) FROM transfer WHERE kind = 'charge') WHERE id = 1")
  db.run("UPDATE account SET balance = -(SELECT sum(amount) FROM transfer WHERE kind = 'top_up') WHERE id = 4")
})()
for (const { sql } of parts) db.run(sql)
for (const { kind, value } of Object.values(recordIndexes)) {
  db.run(
    `INSERT INTO record_index SELECT ${kind}, ${value}, r.call_id FROM record r WHERE ${value} IS NOT NULL ORDER BY 2, 3`,
  )
}
db.run('INSERT INTO transfer_index SELECT debit, seq FROM transfer ORDER BY debit, seq')
db.run('UPDATE index_progress SET seq = (SELECT max(seq) FROM transfer) WHERE kind = 0')
db.run('PRAGMA wal_checkpoint(TRUNCATE)')
db.close()
