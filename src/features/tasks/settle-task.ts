// Settles a task exactly once: cost, record, ledger. Only then is the task over. The upstream's last answer is written
// first, so that after a crash the settlement continues with the same data.

import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Price } from '../../base/money/price.ts'
import type { Usage } from '../../base/money/usage.ts'
import { noUsage } from '../../base/money/usage.ts'
import { isExcessive } from '../../billing/believable-usage.ts'
import type { SettleExtras } from '../../billing/ledger.ts'
import type { CallPriceOrFree } from '../../billing/price.ts'
import { hasFee } from '../../billing/price.ts'
import { priceCall, withUnits } from '../../pipeline/60-cost.ts'
import type { Deduct } from '../../pipeline/70-deduct.ts'
import { endColumns, usageOf } from '../../pipeline/80-record.ts'
import type { CallEnding } from '../../pipeline/exchange.ts'
import type { Cost } from '../../pipeline/settle/call-cost.ts'
import type { CallBodyStorage } from '../../pipeline/settle/keep-bodies.ts'
import type { Settle } from '../../pipeline/settle/settle.ts'
import type { TaskReport } from '../../protocols/ark-passthrough/tasks.ts'
import { readTask } from '../../protocols/ark-passthrough/tasks.ts'
import type { TaskStatus } from '../../store/vault/vault-types.ts'
import type { Task, TaskStore } from '../../vault/tasks.ts'
import type { TaskTerms } from './task-terms.ts'
import { readTaskTerms, taskPrice } from './task-terms.ts'

export interface TaskSettlerParts {
  readonly tasks: TaskStore
  readonly deduct: Deduct
  /** The price of a version, which never changes. */
  priceOf(version: number): Promise<Price>
  dateMs(): number
}

export interface TaskSettler {
  /** Settles a task whose final state is written. */
  finish(task: Task): Promise<void>
  /** Ends a task without a result, whatever its upstream may still do. */
  close(task: Task, status: TaskStatus, ending: CallEnding): Promise<void>
}

export const isTaskOver = (status: TaskStatus): boolean => status !== 'queued' && status !== 'running'

/** The gateway's own task object, where the upstream's is missing or must not be shown. */
export function taskJson({ id, model, createdMs, updatedMs }: Task, status: TaskStatus): string {
  const [created_at, updated_at] = [createdMs, updatedMs].map(ms => Math.floor(ms / 1_000))
  return JSON.stringify({ id, model, status, error: null, created_at, updated_at })
}

export function buildTaskSettler({ tasks, deduct, priceOf, dateMs }: TaskSettlerParts): TaskSettler {
  async function settle(task: Task, ending: CallEnding, state?: TaskReport): Promise<void> {
    const terms = readTaskTerms(task.admitted)
    const cost = costOf(terms, ending, { state, price: await taskPrice(terms, priceOf) })
    const row = {
      ...terms.draft,
      ...usageOf(cost),
      ...endColumns(ending, cost),
      callId: task.callId,
      keyId: task.keyId,
      accountId: task.accountId,
      channel: task.channel,
      attempts: null,
      timings: null,
      firstContentMs: null,
      durationMs: Math.max(0, Math.round(dateMs() - task.createdMs)),
    }
    await deduct(row, cost, extrasOf(terms, task))
  }

  async function markOver({ callId }: Task, status: TaskStatus, words?: string): Promise<void> {
    const change = { callId, status, dueMs: null, updatedMs: dateMs() }
    await (words === undefined ? tasks.change(change) : tasks.change(change, Buffer.from(words)))
  }

  return {
    async finish(task) {
      const state = task.body && readTask(task.body)
      const outcome = task.status === 'succeeded' ? 'task_succeeded' : 'task_ended'
      await settle(task, { outcome, status: 200 }, state)
      await markOver(task, task.status)
    },
    async close(task, status, ending) {
      await settle(task, ending)
      await markOver(task, status, taskJson(task, status))
    },
  }
}

export interface UnstartedTaskParts {
  readonly tasks: TaskStore
  readonly bodyStorage: Pick<CallBodyStorage, 'storeBodies'>
  readonly log: Log
  dateMs(): number
}

/** Settles the call of a task that was not started, and deletes its row. A started task is settled when it is over. */
export function settleUnlessStarted(settle: Settle, { tasks, bodyStorage, log, dateMs }: UnstartedTaskParts): Settle {
  return async function settleUnstarted(exchange, ending) {
    const { callId, permit } = exchange
    const task = permit && (await tasks.getByCall(callId, permit.caller.accountId))
    if (task !== undefined && task.upstreamId !== null) {
      exchange.settlement.ending = ending
      return bodyStorage.storeBodies(exchange, ending)
    }
    await settle(exchange, ending)
    if (task === undefined) return
    try {
      await tasks.change({ callId, status: 'failed', dueMs: null, updatedMs: dateMs() })
      await tasks.delete(task)
    } catch (fault) {
      // The poller does it later.
      log.error('the row of a task that was not started could not be deleted', {
        request: exchange.requestId,
        fault: describeFault(fault),
      })
    }
  }
}

interface CostParts {
  readonly state: TaskReport | undefined
  readonly price: CallPriceOrFree
}

function costOf(terms: TaskTerms, { outcome }: CallEnding, { state, price }: CostParts): Cost {
  const finished = {
    outcome,
    isForwarded: true,
    hasContent: outcome === 'task_succeeded',
    fellBack: false,
    reported: believedUsage(terms, state),
    isReportOutdated: false,
    isDelivered: false,
    hasProviderTools: false,
    estimateHidden: () => 0,
    estimate: () => estimateOf(terms, state, price !== undefined && hasFee(price.price, terms.units)),
  }
  return priceCall(finished, price, state?.serviceClass, ({ usage }) => withUnits(withSearch(usage, terms), terms, 0))
}

/** A report that is far above all that the task can have used counts as not reported. */
function believedUsage({ tokensMax, units }: TaskTerms, state: TaskReport | undefined): Usage | undefined {
  const usage = state?.usage
  if (usage === undefined || usage === 'nonsense') return undefined
  const size = { inputTokensMax: 0, outputTokensMax: tokensMax, choices: 1, searchesMax: 0, units }
  return isExcessive(usage, { size, withTools: false }) ? undefined : usage
}

/** What is billed by the second is not billed in tokens as well. */
function estimateOf({ tokensMax, units }: TaskTerms, state: TaskReport | undefined, bySecond: boolean): Usage {
  if (state === undefined) return bySecond ? { ...noUsage, ...units } : { input: 0, output: tokensMax }
  const { output, seconds = 0 } = state.estimate
  const billedSeconds = Math.min(seconds, units.seconds ?? seconds)
  return bySecond ? { ...noUsage, seconds: billedSeconds } : { input: 0, output: Math.min(output, tokensMax) }
}

/** A requested search counts at least once. */
const withSearch = (usage: Usage, { searches }: TaskTerms): Usage => (searches ? { searches: 1, ...usage } : usage)

/** A task that was started is returned again for its idempotency key; of any other, the key may be used again. */
function extrasOf({ claimed }: TaskTerms, { upstreamId }: Task): SettleExtras {
  if (!claimed) return {}
  return { idempotency: upstreamId === null ? 'release' : { sealed: null } }
}
