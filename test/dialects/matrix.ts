// Runs features of clients against upstream dialects, and returns the outcome of each.

import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import type { Client } from './clients/client.ts'
import type { FeatureName } from './features.ts'
import { features } from './features.ts'
import type { Dialect } from './upstreams.ts'
import { startDialects } from './upstreams.ts'

export interface Cell {
  readonly client: Client
  readonly upstream: Dialect
  readonly feature: FeatureName
}

export interface Outcome extends Cell {
  /** The losses that the gateway reported, in alphabetical order. */
  readonly losses: readonly string[]
  readonly fault?: unknown
}

/** The bound of bodies is low, so that a test can exceed it. */
export const startMatrix = (): Promise<Harness> =>
  startDialects({
    env: { WEIR_DRAIN_SECONDS: '0', LOG_LEVEL: 'error' },
    world: { bodyBounds: { bytesMax: 200_000, msMax: 60_000 } },
  })

export const cellName = ({ client, upstream, feature }: Cell): string => `${client.name} on ${upstream}: ${feature}`

export async function runCell(harness: Harness, cell: Cell): Promise<Outcome> {
  const { client, upstream, feature } = cell
  const key = await harness.key()
  const since = lastCall(harness)
  try {
    await features[feature]({ harness, client, upstream, session: client.connect(harness.url, key) })
    await harness.idle()
    return { ...cell, losses: lossesSince(harness, since) }
  } catch (fault) {
    return { ...cell, losses: lossesSince(harness, since), fault }
  }
}

function read<T>(harness: Harness, query: (db: Database) => T): T {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return query(db)
  } finally {
    db.close()
  }
}

const lastCall = (harness: Harness): bigint =>
  read(harness, db => (db.query('SELECT coalesce(max(call_id), 0) AS id FROM record').get() as { id: bigint }).id)

function lossesSince(harness: Harness, since: bigint): readonly string[] {
  const sql = 'SELECT DISTINCT loss FROM record WHERE call_id > ?1 AND loss IS NOT NULL'
  const rows = read(harness, db => db.query(sql).all(since) as { loss: string }[])
  return [...new Set(rows.flatMap(({ loss }) => loss.split(',')))].sort()
}
