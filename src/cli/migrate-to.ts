// weir migrate-to: moves all data between SQLite and PostgreSQL, and shows how far it is.

import { resolve } from 'node:path'
import { Secret } from '../base/secrets/secret.ts'
import { readConfig } from '../config.ts'
import { moveToPostgres } from '../store/postgres/move.ts'
import { moveToSqlite } from '../store/postgres/move-back.ts'
import { estimateMove } from '../store/postgres/move-estimate.ts'
import type { MoveProgress } from '../store/postgres/move-rows.ts'
import type { MoveTarget } from '../store/postgres/move-state.ts'
import { inspectDatabase } from '../store/postgres/move-state.ts'
import type { PostgresAddress } from '../store/postgres/pools.ts'
import { addressOfUrl, DeadlineError, PostgresPool } from '../store/postgres/pools.ts'
import type { CommandFields } from './connect.ts'
import { jsonText, tableLines } from './print.ts'
import { Problem, UsageProblem } from './problem.ts'
import { openProgress } from './progress.ts'

type Say = (line: string) => void

const PROBE_MS = 10_000
/** For one statement: an index of a large table takes long. */
const STATEMENT_MS = 6 * 3_600_000
const BAR_WIDTH = 30

export async function migrateTo(input: CommandFields, write: Say): Promise<void> {
  const config = readConfig(process.env)
  const isBack = input.target === 'sqlite'
  const folder = resolve(typeof input.folder === 'string' ? input.folder : config.dataFolder)
  const address = addressOf(isBack || input.target === 'postgres' ? config.databaseUrl?.reveal() : String(input.target))
  const target = await probe(address)
  const say: Say = input.json === true ? () => {} : write
  if (input.check === true) {
    const answer = await withPool(address, pool => estimateMove({ folder, pool, target, isBack }))
    if (input.json === true) return write(jsonText({ ...answer }))
    for (const line of tableLines(answer.tables.map(({ table, rows }) => ({ table, rows })))) say(line)
    say(`${answer.rows} rows, about ${answer.seconds} seconds.`)
    for (const problem of answer.problems) say(problem)
    if (answer.problems.length > 0) process.exitCode = 1
    return
  }
  const report = await withPool(address, pool => (isBack ? moveBack(pool, folder, say) : move(pool, folder, say)))
  if (input.json === true) write(jsonText({ ...report }))
}

async function move(pool: PostgresPool, folder: string, say: Say): Promise<object> {
  const report = await showProgress(onProgress => moveToPostgres({ folder, pool, ...onProgress }))
  const { place, rows, tables, settled, replaced, replacedCount, isContinued } = report
  say(
    isContinued
      ? `An earlier move to ${place} was interrupted just before its end. It is finished now.`
      : `Moved ${rows} rows of ${tables} tables to ${place}. Each was read again and compared.`,
  )
  if (settled > 0) say(`${settled} open calls were settled as after a crash.`)
  if (replacedCount > 0) {
    say(`${replacedCount} texts had characters that PostgreSQL refuses; they were replaced:`)
    for (const line of tableLines(replaced.map(text => ({ ...text })))) say(line)
  }
  say(`Start the gateway with WEIR_DATABASE_URL. The old files in ${folder} end with .moved and are not used any more.`)
  return report
}

async function moveBack(pool: PostgresPool, folder: string, say: Say): Promise<object> {
  const report = await showProgress(onProgress => moveToSqlite({ folder, pool, ...onProgress }))
  say(
    report.isContinued
      ? `An earlier move to ${folder} was interrupted just before its end. It is finished now.`
      : `Moved ${report.rows} rows of ${report.tables} tables to ${folder}. Each was read again and compared.`,
  )
  say('Start the gateway with WEIR_DATA set to this folder, without WEIR_DATABASE_URL, and with the same secrets.')
  return report
}

interface ProgressListeners {
  onProgress(progress: MoveProgress): void
  onStage(stage: string): void
}

function showProgress<T>(run: (listeners: ProgressListeners) => Promise<T>): Promise<T> {
  let text = 'preparing'
  const listeners: ProgressListeners = {
    onProgress: progress => (text = progressText(progress)),
    onStage: stage => (text = stage),
  }
  return openProgress(true)({ label: 'moving the data', detail: () => text }, () => run(listeners))
}

function progressText({ phase, table, done, total }: MoveProgress): string {
  const share = total === 0 ? 1 : done / total
  const bar = '#'.repeat(Math.floor(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '.')
  return `[${bar}] ${Math.floor(share * 100)} %  ${phase} ${table}`
}

function addressOf(text: string | undefined): PostgresAddress {
  if (text === undefined || text === '') throw new UsageProblem('Set WEIR_DATABASE_URL to the PostgreSQL database.')
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['postgres:', 'postgresql:'].includes(url.protocol))
    throw new UsageProblem('The target must be postgres://user:password@host/database, "postgres", or "sqlite".')
  return addressOfUrl(new Secret(text))
}

/** Looks at the database with a short deadline, so that a wrong address is noticed at once. */
function probe(address: PostgresAddress): Promise<MoveTarget> {
  return withPool(address, pool => pool.read(inspectDatabase()), PROBE_MS)
}

async function withPool<T>(
  address: PostgresAddress,
  run: (pool: PostgresPool) => Promise<T>,
  deadlineMs = STATEMENT_MS,
): Promise<T> {
  const pool = new PostgresPool({ address, connections: 1, deadlineMs })
  try {
    return await run(pool)
  } catch (fault) {
    throw problemOf(fault as Error & { code?: unknown })
  } finally {
    await pool.close()
  }
}

function problemOf(fault: Error & { readonly code?: unknown }): Error {
  if (fault instanceof DeadlineError) return new Problem(`${fault.message}. Nothing was moved.`)
  const code = String(fault.code ?? '')
  if (code.startsWith('ERR_POSTGRES_CONNECTION') || code === 'ECONNREFUSED')
    return new Problem(`The database cannot be reached: ${fault.message}`)
  return code.startsWith('ERR_POSTGRES') ? new Problem(`PostgreSQL refused: ${fault.message}`) : fault
}
