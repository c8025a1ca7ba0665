// The schema of PostgreSQL is the same as that of SQLite: tables, columns and their order, keys, indexes, triggers.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { migrate } from '../../src/store/engine/database.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

describe.skipIf(!hasPostgres)('the schema of PostgreSQL', () => {
  const sqlite = new Database(':memory:', { strict: true })
  let server: TestPostgres
  let pool: PostgresPool

  beforeAll(async () => {
    migrate(sqlite)
    server = await startPostgres()
    pool = await server.open()
    await createSchema(pool)
  })
  afterAll(async () => {
    sqlite.close()
    await server.stop()
  })

  /** SQLite has entries of its own instead of these indexes (late-indexes.ts), and triggers and tables for them. */
  const lateIndexes = [
    'record_account',
    'record_end_user',
    'record_failure',
    'record_key',
    'record_model',
    'transfer_from',
  ]
  const isOfLateIndexes = (text: string): boolean =>
    /^(record_index|transfer_index|index_progress|record_entries)\b/.test(text)
  const inSqlite = (sql: string): string[] =>
    sqlite
      .query(sql)
      .values()
      .flat()
      .map(String)
      .filter(text => !isOfLateIndexes(text))
      .toSorted()
  const inPostgres = async (sql: string): Promise<string[]> => {
    const rows = await pool.transact(postgresQuery<{ text: string }>(sql).all())
    return rows.map(({ text }) => text).toSorted()
  }
  /** What only PostgreSQL has. */
  const own = [
    'operator_part',
    'settled_log',
    'process',
    'api_key_fewest',
    'api_key_tags',
    'hold_owner',
    'budget_counts_holds',
    'job_lease',
    'process_batch',
    'revision',
    'schema_info',
    'schema_migration',
    'transfer_count',
    'transfer_commit',
    'transfer_is_counted',
    'cancelled_hold',
    'move_state',
    'process_is_of_ready_data',
  ]
  const isOwn = (text: string): boolean =>
    own.includes(text.split(' ')[0]!) ||
    /^kept_share|^(hold|transfer) \d+ (slot|epoch|xid) |_(is_not_truncated|revision)$/.test(text)

  test('has the same columns, in the same order, with the same types', async () => {
    const types = `CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'BLOB' THEN 'bytea' WHEN 'REAL' THEN 'double precision'
      ELSE lower(c.type) END`
    const expected = inSqlite(
      `SELECT t.name || ' ' || (c.cid + 1) || ' ' || c.name || ' ' || ${types} ||
         CASE WHEN c."notnull" OR c.pk THEN ' not null' ELSE '' END
       FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`,
    )
    const found = await inPostgres(
      `SELECT c.table_name || ' ' || c.ordinal_position || ' ' || c.column_name || ' ' || c.data_type ||
         CASE c.is_nullable WHEN 'NO' THEN ' not null' ELSE '' END AS text
       FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
       WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'`,
    )
    expect(found.filter(column => !isOwn(column))).toEqual(expected)
  })

  test('sorts every text as SQLite does, whatever the collation of the database', async () => {
    const others = await inPostgres(
      `SELECT attrelid::regclass || ' ' || attname AS text FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
       WHERE c.relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped AND atttypid = 'text'::regtype
         AND attcollation <> '"C"'::regcollation
         AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)`,
    )
    expect(others).toEqual([])
  })

  test('has the same views, indexes and triggers', async () => {
    const names = (type: string): string[] =>
      inSqlite(`SELECT name FROM sqlite_schema WHERE type = '${type}' AND sql IS NOT NULL`)
    expect(await inPostgres("SELECT viewname AS text FROM pg_views WHERE schemaname = 'public'")).toEqual(names('view'))
    const indexes = await inPostgres(
      `SELECT c.relname AS text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
       WHERE c.relnamespace = 'public'::regnamespace
         AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)`,
    )
    expect(indexes.filter(name => !isOwn(name))).toEqual([...names('index'), ...lateIndexes].toSorted())
    const triggers = await inPostgres('SELECT tgname AS text FROM pg_trigger WHERE NOT tgisinternal')
    expect(triggers.filter(name => !isOwn(name))).toEqual(names('trigger'))
  })

  test('has the same keys between tables, and as many rules', async () => {
    const references = inSqlite(
      `SELECT t.name || ' ' || f."from" || ' ' || f."table" FROM sqlite_schema t, pragma_foreign_key_list(t.name) f
       WHERE t.type = 'table'`,
    )
    const found = await inPostgres(
      `SELECT k.conrelid::regclass || ' ' || a.attname || ' ' || k.confrelid::regclass AS text
       FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
       WHERE k.contype = 'f'`,
    )
    expect(found.filter(text => !isOwn(text))).toEqual(references)
    const tables = sqlite.query("SELECT sql FROM sqlite_schema WHERE type = 'table'").values().flat().map(String)
    const checks = tables.reduce((sum, sql) => sum + (sql.match(/\bCHECK \(/g) ?? []).length, 0)
    const constraints = await inPostgres(
      "SELECT conrelid::regclass || ' ' || conname AS text FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0",
    )
    expect(constraints.filter(name => !isOwn(name))).toHaveLength(checks)
  })

  test('begins with the same rows', async () => {
    const account = "id || ' ' || name || ' ' || kind || ' ' || balance || ' ' || version"
    const accounts = `SELECT ${account} AS text FROM account`
    expect(await inPostgres(accounts)).toEqual(inSqlite(accounts))
    const tier = "name || ' ' || qpm || ' ' || price_per_mille || ' ' || account_qpm || ' ' || account_concurrency"
    const tiers = `SELECT ${tier} || ' ' || version AS text FROM tier`
    expect(await inPostgres(tiers)).toEqual(inSqlite(tiers))
  })

  test('keeps transfers, prices and audit rows as they are', async () => {
    const refused = async (sql: string): Promise<string> =>
      pool.runScript(sql).then(
        () => 'done',
        (fault: Error) => fault.message,
      )
    await pool.runScript(`INSERT INTO price (model, origin, price, author, made_ms) VALUES ('m', 'operator', '1', 'a', 1);
      INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES (1, 'gift', 2, 1, 5, 1);
      INSERT INTO audit VALUES (1, 1, 'a', NULL, NULL, 'b', 'c', NULL, '{}', decode(repeat('00', 32), 'hex'))`)
    for (const [table, name] of [
      ['price', 'a price'],
      ['transfer', 'a transfer'],
      ['audit', 'an audit row'],
    ]) {
      expect([
        await refused(`UPDATE ${table} SET made_ms = 1`),
        await refused(`DELETE FROM ${table}`),
        await refused(`TRUNCATE ${table}`),
      ]).toEqual([`${name} is final`, `${name} is kept`, `${name} is kept`])
    }
  })
})
