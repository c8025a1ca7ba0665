// The reads of calls and of the management interface on PostgreSQL. Their functions return promises.

import { Refusal } from '../../base/errors.ts'
import type { Reader } from '../engine/reader.ts'
import { callReads, keySnapshotReads } from '../engine/reader.ts'
import { bindReads, bindRepeatableReads } from '../engine/reads.ts'
import type { Steps } from '../engine/steps.ts'
import { accountReads } from '../ledger/account-reader.ts'
import { peopleReads } from '../people/people-reader.ts'
import { buildRulesReads } from '../rules/rules-reader.ts'
import { vaultReads } from '../vault/vault-reader.ts'
import { webhookReads } from '../webhooks/webhook-reader.ts'
import { refusalOf } from './faults.ts'
import type { PostgresPool } from './pools.ts'
import { WorkQueue } from './work-queue.ts'

/**
 * More reads wait, for a short time and in a limited number. Anybody can make the gateway read, by keys that do not
 * exist. If all of these reads were sent, none would be answered before its deadline, which closes the connections.
 */
const READS_AT_ONCE = 64
const READS_WAITING_MAX = 2_000
const WAIT_MS_MAX = 1_000

const overloaded = (): Refusal => new Refusal('overloaded', 'too many reads are waiting', { retryAfterMs: 1_000 })

/** The pool stays open when the reader is closed. */
export function openPostgresReader(pool: Pick<PostgresPool, 'readAgain' | 'readPoint'>): Reader {
  const queue = new WorkQueue({ atOnce: READS_AT_ONCE, waitMsMax: WAIT_MS_MAX, late: overloaded })
  const inTurn = async <T>(read: () => Promise<T>): Promise<T> => {
    if (queue.waitingCount >= READS_WAITING_MAX) throw overloaded()
    return await queue.run(read).catch(refuse)
  }
  const runSteps = <T>(steps: Steps<T>): Promise<T> => inTurn(() => pool.readPoint(steps))
  const runTogether = <T>(open: () => Steps<T>): Promise<T> => inTurn(() => pool.readAgain(open))
  const reads = {
    ...bindReads(callReads, runSteps),
    ...bindRepeatableReads(keySnapshotReads, runTogether),
    accounts: bindRepeatableReads(accountReads, runTogether),
    vault: bindReads(vaultReads, runSteps),
    rules: bindRepeatableReads(buildRulesReads(), runTogether),
    webhooks: bindReads(webhookReads, runSteps),
    people: bindReads(peopleReads, runSteps),
    close: () => {},
  }
  return reads
}

function refuse(fault: unknown): never {
  throw refusalOf(fault)
}
