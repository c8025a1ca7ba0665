// Settles a task exactly once: cost, record, ledger. Only then is the task over. The upstream's last answer is written
// first, so that after a crash the settlement continues with the same data.

import type { Price } from '../../base/money/price.ts'
import type { Usage } from '../../base/money/usage.ts'
import { noUsage } from '../../base/money/usage.ts'
import type { SettleExtras } from '../../billing/ledger.ts'
import { hasFee } from '../../billing/price.ts'
import { priceCall, withUnits } from '../../pipeline/60-cost.ts'
import type { Deduct } from '../../pipeline/70-deduct.ts'
import { recordRow } from '../../pipeline/80-record.ts'
import type { CallEnding } from '../../pipeline/exchange.ts'
import type { Cost } from '../../pipeline/settle/call-cost.ts'
import type { TaskReport } from '../../protocols/ark-passthrough/tasks.ts'
import { readTask } from '../../protocols/ark-passthrough/tasks.ts'
import type { RecordDraft } from '../../store/ledger/hold-types.ts'
import type { TaskStatus } from '../../store/vault/vault-types.ts'
import type { Task, TaskStore } from '../../vault/tasks.ts'
import type { TaskTerms } from './task-terms.ts'
import { readTaskTerms, taskPrice } from './task-terms.ts'

export interface TaskSettlerParts {
  readonly tasks: TaskStore
  readonly deduct: Deduct
  /** The price of a version, which never changes. */
  priceOf(version: number): Price
  dateMs(): number
}

export interface TaskSettler {
  /** Settles a task whose final state is written. */
  finish(task: Task): Promise<void>
  /** Ends a task without a result, whatever its upstream may still do. */
  close(task: Task, status: TaskStatus, ending: CallEnding): Promise<void>
  /** Records a task that was refused before its row was written. */
  refuse(refused: RefusedTask, ending: CallEnding): Promise<void>
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

export function buildTaskSettler({ tasks, deduct, priceOf, dateMs }: TaskSettlerParts): TaskSettler {
  async function settle(task: Task, ending: CallEnding, state?: TaskReport): Promise<void> {
    const terms = readTaskTerms(task.admitted)
    const cost = costOf(terms, ending, { state, priceOf })
    const row = recordRow(terms.draft, ending, cost, {
      ...columnsOf(task),
      durationMs: Math.max(0, Math.round(dateMs() - task.createdMs)),
    })
    await deduct(row, cost, extrasOf(terms, ending))
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
      const cost = costOf(emptyAdmission(draft), ending, { state: undefined, priceOf })
      const row = recordRow(draft, ending, cost, { ...columnsOf({ ...refused, channel: null }), durationMs: 0 })
      await deduct(row, cost, undefined)
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
  readonly state: TaskReport | undefined
  priceOf(version: number): Price
}

function costOf(terms: TaskTerms, { outcome }: CallEnding, { state, priceOf }: CostParts): Cost {
  const price = taskPrice(terms, priceOf)
  const finished = {
    outcome,
    isForwarded: true,
    hasContent: outcome === 'task_succeeded',
    fellBack: false,
    reported: state?.usage === 'nonsense' ? undefined : state?.usage,
    isReportOutdated: false,
    isDelivered: false,
    hasProviderTools: false,
    estimateHidden: () => 0,
    estimate: () => estimateOf(terms, state, price !== undefined && hasFee(price.price, terms.units)),
  }
  return priceCall(finished, price, state?.serviceClass, ({ usage }) => withUnits(withSearch(usage, terms), terms, 0))
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

/** With a result, the idempotency key returns the same task; without one, the key may be used again. */
function extrasOf({ claimed }: TaskTerms, { outcome }: CallEnding): SettleExtras {
  if (!claimed) return {}
  const wasStarted = outcome === 'task_succeeded' || outcome === 'task_ended' || outcome === 'task_lost'
  return { idempotency: wasStarted ? { sealed: null } : 'release' }
}

type RecordedTask = Omit<RefusedTask, 'draft'> & { readonly channel: string | null }

const columnsOf = ({ callId, keyId, accountId, channel }: RecordedTask) => ({
  callId,
  keyId,
  accountId,
  channel,
  attempts: null,
  timings: null,
  firstContentMs: null,
})
