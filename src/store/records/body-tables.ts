// The tables of the file of bodies.

import type { Database } from 'bun:sqlite'

const SCHEMA = 2

/** Creates the tables in a new file, and adds what an older file lacks. */
export function createBodyTables(db: Database): void {
  const { user_version: schema } = db.query('PRAGMA user_version').get() as { user_version: bigint }
  if (schema > SCHEMA) throw new Error('The file of bodies was written by a later version of Weir.')
  db.run(
    `CREATE TABLE IF NOT EXISTS body (
       call_id           INTEGER PRIMARY KEY,
       request           BLOB NOT NULL,
       request_truncated INTEGER NOT NULL,
       answer            BLOB NOT NULL,
       answer_truncated  INTEGER NOT NULL
     ) STRICT`,
  )
  if (schema < SCHEMA) addOwnerTable(db)
}

/** Migrates to the second schema. Owners get a separate table, because a new column would rewrite all bodies. */
function addOwnerTable(db: Database): void {
  const statements = [
    `CREATE TABLE body_owner (
       call_id    INTEGER PRIMARY KEY,
       account_id INTEGER NOT NULL,
       bytes      INTEGER NOT NULL
     ) STRICT`,
    'CREATE INDEX body_owner_account ON body_owner (account_id, call_id)',
    'INSERT INTO body_owner SELECT call_id, 0, length(request) + length(answer) FROM body',
    `PRAGMA user_version = ${SCHEMA}`,
  ]
  db.transaction(() => statements.forEach(statement => db.run(statement))).immediate()
}
