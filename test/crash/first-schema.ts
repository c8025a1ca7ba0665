// A database of the first schema after a crash: accounts with money, some of it held, and records. Its migration must lose
// no money, wherever the gateway is killed.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'

const ACCOUNTS = 300
const FIRST_ID = 1_000

/** Writes a database of the first schema. The gateway adds the later migrations. */
export function writeFirstSchema(path: string, root: string): void {
  const schema = readFileSync(join(root, 'src', 'store', 'migrations', '0001-house.sql'), 'utf8')
  const db = openDatabase(path, { create: true, readwrite: true })
  try {
    db.run('PRAGMA journal_mode = WAL')
    db.transaction(() => {
      db.run(schema)
      db.run('PRAGMA user_version = 1')
      const insertAccount = db.query('INSERT INTO account VALUES (?1, ?2, ?3, ?4, 0)')
      const insertHold = db.query('INSERT INTO hold VALUES (?1, ?2, ?3)')
      const insertRecord = db.query(
        `INSERT INTO record VALUES (?1, 1, ?2, 'openai', 'gpt-4o-mini', 'openai#1', 200, 'completed', 'reported',
           10, 0, 10, 7500, 1, 0, 100)`,
      )
      for (let account = 0; account < ACCOUNTS; account++) {
        const id = FIRST_ID + account
        const held = account % 10 === 0 ? 40 : 0
        insertAccount.run(id, 'old', balanceOf(account), held)
        if (held > 0) insertHold.run(id, id, held)
        insertRecord.run(id + ACCOUNTS, id)
      }
    })()
  } finally {
    db.close()
  }
}

/** Every tenth account has nothing. */
const balanceOf = (account: number): number => (account % 10 === 9 ? 0 : 1_000_000 + account)

/** Violations: accounts of the first schema that the migration has changed or lost. */
export function checkFirstSchema(path: string): string[] {
  const db = openDatabase(path, { readonly: true })
  try {
    const rows = db.query('SELECT id, balance, held FROM account WHERE name = ?1').all('old') as OldAccount[]
    const violations = rows.length === ACCOUNTS ? [] : [`the upgrade kept ${rows.length} of ${ACCOUNTS} accounts`]
    for (const { id, balance, held } of rows) {
      if (balance !== balanceOf(id - FIRST_ID)) violations.push(`the upgrade left account ${id} with ${balance}`)
      if (held !== 0) violations.push(`the upgrade left account ${id} with ${held} held for nobody`)
    }
    return violations
  } finally {
    db.close()
  }
}

interface OldAccount {
  readonly id: number
  readonly balance: number
  readonly held: number
}
