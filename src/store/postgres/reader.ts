// The reads of calls and of the management interface on PostgreSQL. Their functions return promises.

import type { Reader } from '../engine/reader.ts'
import { callReads, keySnapshotReads } from '../engine/reader.ts'
import { bindReads } from '../engine/reads.ts'
import type { Steps } from '../engine/steps.ts'
import { accountReads } from '../ledger/account-reader.ts'
import { peopleReads } from '../people/people-reader.ts'
import { buildRulesReads } from '../rules/rules-reader.ts'
import { vaultReads } from '../vault/vault-reader.ts'
import { webhookReads } from '../webhooks/webhook-reader.ts'
import { refusalOf } from './faults.ts'
import type { PostgresPool } from './pools.ts'

/** The pool stays open when the reader is closed. */
export function openPostgresReader(pool: Pick<PostgresPool, 'read' | 'readPoint'>): Reader {
  const runSteps = <T>(steps: Steps<T>): Promise<T> => pool.readPoint(steps).catch(refuse)
  const runTogether = <T>(steps: Steps<T>): Promise<T> => pool.read(steps).catch(refuse)
  const reads = {
    ...bindReads(callReads, runSteps),
    ...bindReads(keySnapshotReads, runTogether),
    accounts: bindReads(accountReads, runTogether),
    vault: bindReads(vaultReads, runSteps),
    rules: bindReads(buildRulesReads(), runTogether),
    webhooks: bindReads(webhookReads, runSteps),
    people: bindReads(peopleReads, runSteps),
    close: () => {},
  }
  return reads
}

function refuse(fault: unknown): never {
  throw refusalOf(fault)
}
