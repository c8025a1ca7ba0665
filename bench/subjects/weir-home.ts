// Weir's data folder for a run. Its first keys are created by `weir keys create`; up to a million further keys are written
// into the database while no gateway runs.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { digestKey, keySuffix, mintKey } from '../../src/identity/key-format.ts'
import { openFolder } from '../../src/store/engine/folder.ts'
import type { Workbench } from '../system/workbench.ts'
import { read, root } from '../system/workbench.ts'

/** Several keys, because a gateway at full speed could exceed the 100,000 calls a minute of one key. */
const KEYS = 16
const CREDIT_NANO_USD = 100_000_000_000

export interface WeirHome {
  /** The checkout whose gateway runs. */
  readonly program: string
  readonly env: Readonly<Record<string, string>>
  readonly keys: readonly string[]
}

/** `more`: further environment variables of the gateway. */
export function makeWeirHome(
  bench: Workbench,
  program = root,
  data = 'data',
  more: Readonly<Record<string, string>> = {},
): WeirHome {
  const env = {
    ...more,
    WEIR_DATA: join(bench.folder, data),
    WEIR_LOCAL_SERVERS: 'off',
    WEIR_DRAIN_SECONDS: '2',
    WEIR_DRAIN_DELAY_SECONDS: '0',
  }
  const options = ['--tier', 'pro', '--credit', '100000', '--qpm', '100000']
  const command = [join(program, 'bin', 'weir'), 'keys', 'create', ...options]
  return { program, env, keys: Array.from({ length: KEYS }, () => read(command, env)) }
}

export interface Crowd {
  /** The number of all keys. Most have a digest that belongs to no text. */
  readonly size: number
  /** The number of keys whose texts are known, so that calls can use them. */
  readonly callable: number
}

/** Adds the keys, each with its own account, and returns the texts of those that calls can use. */
export function addKeys(home: WeirHome, { size, callable }: Crowd): readonly string[] {
  const folder = openFolder(home.env.WEIR_DATA!, home.env)
  const db = new Database(folder.database, { readwrite: true, strict: true })
  const texts = Array.from({ length: callable }, () => mintKey())
  try {
    db.run('PRAGMA foreign_keys = ON')
    db.run('PRAGMA cache_size = -262144')
    const insert = db.query(INSERT_KEY)
    db.transaction(() => {
      db.query(INSERT_ACCOUNTS).run({ size, balance: CREDIT_NANO_USD, now: Date.now() })
      db.query(INSERT_TRANSFERS).run()
      db.query(UPDATE_CLEARING).run()
      texts.forEach((text, index) => {
        const digest = digestKey(text, folder.secrets.pepper.newest)
        insert.run({ id: index + 1, digest, suffix: keySuffix(text), now: Date.now() })
      })
      db.query(INSERT_REST).run({ first: callable + 1, size, now: Date.now() })
    }).immediate()
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    db.close()
  }
  return texts
}

// These ids begin at 1, far below the time-ordered ids of the gateway.
const INSERT_ACCOUNTS = `
  WITH RECURSIVE row (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM row WHERE id < $size)
  INSERT INTO account (id, name, kind, balance, created_ms)
  SELECT id + 10, 'account ' || id, 'prepaid', $balance, $now FROM row` // the first ids are the operator's own

/** The transfers are in balance; otherwise the auditor would freeze all accounts. */
const INSERT_TRANSFERS = `
  INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
  SELECT id, 'top_up', 4, id, balance, created_ms FROM account WHERE name LIKE 'account %'`
const UPDATE_CLEARING = `
  UPDATE account SET balance = -(SELECT sum(amount) FROM transfer WHERE kind = 'top_up') WHERE id = 4`

const INSERT_KEY = `
  INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms)
  VALUES ($id, $digest, $suffix, 'key ' || $id, $id + 10, 'pro', $now)`

const INSERT_REST = `
  WITH RECURSIVE row (id) AS (SELECT $first UNION ALL SELECT id + 1 FROM row WHERE id < $size)
  INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms)
  SELECT id, randomblob(32), substr(hex(randomblob(2)), 1, 4), 'key ' || id, id + 10, 'pro', $now FROM row`
