// Settles a task exactly once: cost, record, ledger. Only then is the task over. The upstream's last answer is written
// first, so that after a crash the settlement continues with the same data.

import type { ErrorCode } from '../../base/errors.ts'
import type { Price } from '../../base/money/price.ts'
import type { Usage } from '../../base/money/usage.ts'
import { noUsage } from '../../base/money/usage.ts'
import type { Ledger, SettleExtras } from '../../billing/ledger.ts'
import { computeBill, hasFee } from '../../billing/price.ts'
import type { Outcome } from '../../billing/who-pays.ts'
import { decideCharge } from '../../billing/who-pays.ts'
import { usageOf } from '../../pipeline/80-record.ts'
import type { Cost } from '../../pipeline/settle/call-cost.ts'
import type { TaskReport } from '../../protocols/ark-passthrough/tasks.ts'
import { readTask } from '../../protocols/ark-passthrough/tasks.ts'
import type { RecordDraft, RecordRow } from '../../store/ledger/hold-types.ts'
import type { TaskStatus } from '../../store/vault/vault-types.ts'
import type { Task, TaskStore } from '../../vault/tasks.ts'
import type { TaskTerms } from './task-terms.ts'
import { readTaskTerms, taskPrice } from './task-terms.ts'

export interface TaskSettlerParts {
  readonly tasks: TaskStore
  readonly ledger: Pick<Ledger, 'settle' | 'record'>
  /** The price of a version, which never changes. */
  priceOf(version: number): Price
  dateMs(): number
}

export interface TaskEnding {
  readonly outcome: Outcome
  readonly status: number
  readonly error?: ErrorCode
}

export interface TaskSettler {
  /** Settles a task whose final state is written. */
  finish(task: Task): Promise<void>
  /** Ends a task without a result, whatever its upstream may still do. */
  close(task: Task, status: TaskStatus, ending: TaskEnding): Promise<void>
  /** Records a task that was refused before its row was written. */
  refuse(refused: RefusedTask, ending: TaskEnding): Promise<void>
}

export interface RefusedTask {
  readonly callId: number
  readonly keyId: number
  readonly accountId: number
  readonly draft: RecordDraft
}

export const isTaskOver = (status: TaskStatus): boolean => status !== 'queued' && status !== 'running'

/** The gateway's own task object, where the upstream's is missing or must not be shown. */
export function taskJson({ id, model, createdMs, updatedMs }: Task, status: TaskStatus): string {
  const [created_at, updated_at] = [createdMs, updatedMs].map(ms => Math.floor(ms / 1_000))
  return JSON.stringify({ id, model, status, error: null, created_at, updated_at })
}

export function buildTaskSettler({ tasks, ledger, priceOf, dateMs }: TaskSettlerParts): TaskSettler {
  async function settle(task: Task, ending: TaskEnding, state?: TaskReport): Promise<void> {
    const admission = readTaskTerms(task.admitted)
    const cost = costOf(admission, { outcome: ending.outcome, state, priceOf })
    const row = recordOf(task, { draft: admission.draft, ending, cost, durationMs: dateMs() - task.createdMs })
    await ledger.settle(row, cost.amount, extrasOf(admission, ending))
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
    async refuse({ draft, ...refused }, ending) {
      const cost = costOf(emptyAdmission(draft), { outcome: ending.outcome, state: undefined, priceOf })
      await ledger.record(recordOf({ ...refused, channel: null }, { draft, ending, cost, durationMs: 0 }))
    },
  }
}

const emptyAdmission = (draft: RecordDraft): TaskTerms => ({
  draft,
  tokensMax: 0,
  units: {},
  searches: false,
  claimed: false,
})

interface CostParts {
  readonly outcome: Outcome
  readonly state: TaskReport | undefined
  priceOf(version: number): Price
}

function costOf(admission: TaskTerms, { outcome, state, priceOf }: CostParts): Cost {
  const price = taskPrice(admission, priceOf)
  const reported = state?.usage === 'nonsense' ? undefined : state?.usage
  const charged = decideCharge({
    outcome,
    isForwarded: true,
    hasContent: outcome === 'task_succeeded',
    fellBack: false,
    reported,
    isReportOutdated: false,
    isDelivered: false,
    hasProviderTools: false,
    estimateHidden: () => 0,
    estimate: () => estimateOf(admission, state, price !== undefined && hasFee(price.price, admission.units)),
  })
  const usage = charged.source === 'none' ? charged.usage : withUnits(charged.usage, admission)
  return { ...charged, usage, ...computeBill(usage, price, state?.serviceClass) }
}

/** What is billed by the second is not billed in tokens as well. */
function estimateOf({ tokensMax, units }: TaskTerms, state: TaskReport | undefined, bySecond: boolean): Usage {
  if (state === undefined) return bySecond ? { ...noUsage, ...units } : { input: 0, output: tokensMax }
  const { output, seconds = 0 } = state.estimate
  const billedSeconds = Math.min(seconds, units.seconds ?? seconds)
  return bySecond ? { ...noUsage, seconds: billedSeconds } : { input: 0, output: Math.min(output, tokensMax) }
}

/** Units that the upstream does not report are taken from the request; a requested search counts at least once. */
function withUnits(usage: Usage, { units, searches }: TaskTerms): Usage {
  return { ...(searches && { searches: 1 }), ...units, ...usage }
}

/** With a result, the idempotency key returns the same task; without one, the key may be used again. */
function extrasOf({ claimed }: TaskTerms, { outcome }: TaskEnding): SettleExtras {
  if (!claimed) return {}
  const wasStarted = outcome === 'task_succeeded' || outcome === 'task_ended' || outcome === 'task_lost'
  return { idempotency: wasStarted ? { sealed: null } : 'release' }
}

interface RecordParts {
  readonly draft: RecordDraft
  readonly ending: TaskEnding
  readonly cost: Cost
  readonly durationMs: number
}

type RecordedTask = Omit<RefusedTask, 'draft'> & { readonly channel: string | null }

function recordOf(task: RecordedTask, { draft, ending, cost, durationMs }: RecordParts): RecordRow {
  return {
    ...draft,
    ...usageOf(cost),
    callId: task.callId,
    keyId: task.keyId,
    accountId: task.accountId,
    channel: task.channel,
    status: ending.status,
    error: ending.error ?? null,
    outcome: ending.outcome,
    rule: cost.rule,
    usageSource: cost.source,
    attempts: null,
    timings: null,
    firstContentMs: null,
    durationMs: Math.max(0, Math.round(durationMs)),
  }
}
