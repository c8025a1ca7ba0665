// Asks PostgreSQL for a thread that waits for the answer without its event loop (harness-databases.ts).

import { serialize } from 'bun:jsc'
import type { Statement } from '../../src/store/engine/steps.ts'
import { PostgresPool } from '../../src/store/postgres/pools.ts'
import type { SyncAnswer, SyncRequest } from './harness-databases.ts'

declare const self: Worker

/** Shorter than the other thread waits. */
const DEADLINE_MS = 30_000

const sessions = new Map<number, PostgresPool>()

async function answer({ address, session, sql, values }: SyncRequest): Promise<SyncAnswer> {
  const settings = { search_path: 'as_sqlite, pg_catalog, public' }
  const pool = sessions.get(session) ?? new PostgresPool({ address, connections: 1, deadlineMs: DEADLINE_MS, settings })
  sessions.set(session, pool)
  try {
    if (sql === 'close') {
      sessions.delete(session)
      await pool.close()
      return { rows: [], count: 0 }
    }
    const statement: Statement = {
      text: { sqlite: sql, postgres: sql },
      values: values as Statement['values'],
      want: 'rows',
    }
    const rows = (await pool.runAlone(statement)) as readonly Record<string, unknown>[] & { readonly count: number }
    return { rows: rows.map(row => ({ ...row })), count: rows.count }
  } catch (fault) {
    return { fault: String(fault) }
  }
}

self.onmessage = async ({ data }: MessageEvent<SyncRequest>) => {
  const answered = new Uint8Array(serialize(await answer(data)))
  data.bytes.set(answered)
  Atomics.store(data.length, 0, answered.length)
  Atomics.notify(data.length, 0)
}
