// Lists the processes that use the database, for people.

import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { ProcessList } from '../engine/store-engine.ts'
import { LEASE_MS } from './membership.ts'

interface ProcessRow {
  readonly slot: bigint
  readonly version: string
  readonly address: string
  readonly expires_ms: bigint
}

const findNow = postgresQuery<{ now_ms: bigint }>('SELECT database_ms() AS now_ms')
const findAlive = postgresQuery<ProcessRow>(
  'SELECT slot, version, address, expires_ms FROM process WHERE is_dead = 0 ORDER BY slot',
)

export function* readMembers(): Steps<ProcessList> {
  const rows = yield* findAlive.all()
  const nowMs = Number((yield* findNow.get())!.now_ms)
  const members = rows.map(({ slot, version, address, expires_ms: expiresMs }) => ({
    slot: Number(slot),
    version,
    address,
    leaseAgeMs: nowMs - (Number(expiresMs) - LEASE_MS),
    hasRunOut: Number(expiresMs) < nowMs,
  }))
  return { nowMs, members }
}
