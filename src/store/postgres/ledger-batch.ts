// A batch of operations of calls as the parameters of the function numbered_batch, and its results.

import { assert } from '../../base/assert.ts'
import type { HotName, OperationInput, OperationResult } from '../engine/operations.ts'
import type { Statement } from '../engine/steps.ts'
import type { RecordRow } from '../ledger/hold-types.ts'
import { readAmount } from '../ledger/money-text.ts'

/** A settle that finds a record tells what was settled, so that a process that repeats it knows whether it was its own. */
export type BatchResult<Name extends HotName> = Name extends 'settle'
  ? Exclude<OperationResult<'settle'>, { done: 'exists' }> | SettledBefore
  : OperationResult<Name>

export interface SettledBefore {
  readonly done: 'exists'
  readonly outcome: string
  readonly charged: `${bigint}`
  readonly shortfall: `${bigint}`
}

/** `cancel` removes a hold whose caller was refused because the database took too long. */
export type BatchJob =
  | { [Name in HotName]: { readonly name: Name; readonly input: OperationInput<Name> } }[HotName]
  | { readonly name: 'cancel'; readonly input: { readonly callId: number } }

/** A job as the function gets it. */
export interface EncodedJob {
  readonly name: BatchJob['name']
  readonly callId: number
  readonly accountId?: number
  /** Its entry in the list of its kind, as JSON. */
  readonly json: string
  /** The answer to store for its idempotency key, sealed, in base64. */
  readonly answer?: string
}

/** How much a job adds to the size of its batch. */
export const sizeOfJob = ({ json, answer = '' }: EncodedJob): number => json.length + answer.length

export interface BatchOwner {
  readonly slot: number
  readonly epoch: number
}

/** Throws if the input cannot be right. The database would refuse it too, but with all others of the batch. */
export function encodeJob(job: BatchJob): EncodedJob {
  const { name } = job
  switch (name) {
    case 'hold': {
      const { callId, kind, accountId, keyId, amount, wants, least, draft, idempotency, keyVersion, revision } =
        job.input
      for (const money of [amount, wants, least ?? '0'] as const) readAmount(money)
      const claim = idempotency && { claim_name: idempotency.name, fingerprint: idempotency.fingerprint }
      const entry = {
        call_id: callId,
        kind,
        account_id: accountId,
        key_id: keyId,
        amount,
        wants,
        least,
        draft,
        ...claim,
        key_version: keyVersion,
        revision,
      }
      return { name, callId, accountId, json: cleanJson(entry) }
    }
    case 'extend': {
      const { callId, amount, least, held } = job.input
      for (const money of [amount, least, held]) readAmount(money)
      return { name, callId, json: cleanJson({ call_id: callId, amount, least, held }) }
    }
    case 'checkpoint': {
      const { callId, used, known } = job.input
      readAmount(used)
      return { name, callId, json: cleanJson({ call_id: callId, used, known }) }
    }
    case 'settle': {
      const { record, cost, idempotency } = job.input
      readAmount(cost)
      const entry = {
        row_of_record: { ...recordColumns(record), cost },
        ...(idempotency === 'release' && { claim: idempotency }),
        ...(typeof idempotency === 'object' && { claim: 'finish' }),
      }
      const answer = typeof idempotency === 'object' ? idempotency.sealed : null
      return { name, callId: record.callId, json: cleanJson(entry), ...(answer !== null && { answer }) }
    }
    case 'record': {
      const { record } = job.input
      const nothing = { cost: 0, shortfall: 0, held: 0 }
      return { name, callId: record.callId, json: cleanJson({ ...recordColumns(record), ...nothing }) }
    }
    case 'cancel':
      return { name, callId: job.input.callId, json: String(job.input.callId) }
  }
}

/** Absent columns are null. */
const recordColumns = (record: RecordRow): Readonly<Record<string, unknown>> => ({
  call_id: record.callId,
  key_id: record.keyId,
  account_id: record.accountId,
  dialect: record.dialect,
  provider: record.provider,
  model: record.model,
  channel: record.channel,
  status: record.status,
  error: record.error,
  outcome: record.outcome,
  rule: record.rule,
  usage_source: record.usageSource,
  streamed: record.streamed ? 1 : 0,
  input_tokens: record.inputTokens,
  cache_read_tokens: record.cacheReadTokens,
  cache_write_tokens: record.cacheWriteTokens,
  output_tokens: record.outputTokens,
  reasoning_tokens: record.reasoningTokens,
  price_version: record.priceVersion,
  lines: record.lines,
  attempts: record.attempts,
  timings: record.timings,
  first_ms: record.firstContentMs,
  duration_ms: record.durationMs,
  end_user: record.endUser,
  tags: record.tags,
  loss: record.loss,
  came_hash: record.requestHash,
  went_hash: record.upstreamHash,
  asked: record.requestedModel,
  why: record.routing,
  conversation: record.conversation,
})

/** Both are written as escapes in JSON. Escapes of other texts may look the same, so a hit says only: look closer. */
const MAYBE_UNCLEAN = /\\u(0000|d[89a-f])/

/** PostgreSQL stores no NUL and no half of a surrogate pair, which SQLite and JSON do. Texts of callers may have them. */
function cleanJson(entry: unknown): string {
  const json = JSON.stringify(entry)
  if (!MAYBE_UNCLEAN.test(json)) return json
  return JSON.stringify(entry, (_, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '') : value,
  )
}

const lists = {
  cancel: 'cancels',
  settle: 'settles',
  extend: 'extends',
  checkpoint: 'checkpoints',
  record: 'records',
  hold: 'holds',
} as const

const BATCH = {
  sqlite: '',
  postgres: `SELECT numbered_batch($1, $2, $3, CAST(CAST($4 AS TEXT) AS BIGINT[]), CAST(CAST($5 AS TEXT) AS BIGINT[]),
    CAST(CAST($6 AS TEXT) AS JSON), CAST(CAST($7 AS TEXT) AS BIGINT[]), CAST(CAST($8 AS TEXT) AS TEXT[]),
    CAST($9 AS BIGINT)) AS unusual`,
}

export interface BatchHead {
  readonly owner: BatchOwner
  /** Higher than that of every batch that the owner has sent before. */
  readonly number: number
  /** The time of the batch, only for tests. */
  readonly testMs?: number | undefined
}

export function batchStatement(jobs: readonly EncodedJob[], { owner, number, testMs }: BatchHead): Statement {
  const { slot, epoch } = owner
  const accounts = new Set<number>()
  const entries: Partial<Record<string, string[]>> = {}
  for (const { name, accountId, json } of jobs) {
    if (accountId !== undefined) accounts.add(accountId)
    ;(entries[lists[name]] ??= []).push(json)
  }
  const json = Object.entries(entries).map(([list, items]) => `"${list}":[${items!.join()}]`)
  const calls = jobs.map(({ callId }) => callId)
  const answered = jobs.filter(({ answer }) => answer !== undefined)
  const answers = answered.map(({ answer }) => `"${answer}"`)
  const values = [
    ...[number, slot, epoch, arrayText(calls), arrayText([...accounts]), `{${json.join()}}`],
    ...[arrayText(answered.map(({ callId }) => callId)), arrayText(answers), testMs ?? null],
  ]
  return { text: BATCH, values, want: 'row' }
}

/** An array as PostgreSQL reads it. */
const arrayText = (items: readonly (number | string)[]): string => `{${items.join()}}`

type UnusualResult = readonly [callId: number, done: string, ...facts: (string | number)[]]

/** The results of a batch by call. The usual ones are absent. */
export function readUnusualResults(row: unknown): ReadonlyMap<number, UnusualResult> {
  const unusual = JSON.parse((row as { unusual: string }).unusual) as UnusualResult[]
  return new Map(unusual.map(result => [result[0], result]))
}

/** The result of a job, in the form that the operation has on SQLite. */
export function resultOfJob(
  { name, input }: BatchJob,
  unusual: UnusualResult | undefined,
): BatchResult<HotName> | undefined {
  if (name === 'cancel') return undefined
  if (unusual === undefined) {
    switch (name) {
      case 'hold':
        return { done: 'held' }
      case 'settle':
        return { done: 'settled', charged: input.cost, shortfall: '0' }
      case 'checkpoint':
        return { done: 'noted' }
      case 'record':
        return { done: 'recorded' }
      case 'extend':
        assert(false, 'the result of an extension is always reported')
    }
  }
  const [, done, first, second, third] = unusual
  if (name === 'settle' && done === 'exists') {
    return { done, outcome: first, charged: second, shortfall: third } as SettledBefore
  }
  return { done, ...factsOf(done, first, second) } as BatchResult<HotName>
}

function factsOf(done: string, first: unknown, second: unknown): object {
  switch (done) {
    case 'settled':
      return first === undefined ? {} : { charged: first, shortfall: second }
    case 'held':
    case 'extended':
      return { granted: first }
    case 'balance_too_low':
    case 'hold_less':
      return { available: first }
    case 'budget_too_low':
      return { available: first, budget: second }
    case 'running':
    case 'finished':
    case 'other_body':
      return { callId: first }
    default:
      return {}
  }
}
