// The process of the checker: for each line on its standard input it checks once and answers with one line. It shares only
// the database file with the gateway, and only the log with the harness.
//
//   checker.ts <database> <log> <checkpoint ms>

import { createInterface } from 'node:readline'
import type { Books, Position } from './books.ts'
import { readBooks } from './books.ts'
import { Checker } from './check.ts'

const [database, log, checkpointMs] = process.argv.slice(2)
const read = (after: Position): Books => readBooks(database!, after)
const checker = new Checker({ read, log: log!, checkpointMs: Number(checkpointMs) })

for await (const line of createInterface({ input: process.stdin })) {
  if (line !== 'look') throw new Error(`the checker does not know "${line}"`)
  process.stdout.write(`${JSON.stringify(await checker.look())}\n`)
}
