// The filters of call records, as requests have them: of a search, of an export, and of a live stream.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { idAtMs } from '../../base/ids.ts'
import { parseUsd } from '../../base/money/money.ts'
import type { Outcome } from '../../billing/who-pays.ts'
import { outcomes } from '../../billing/who-pays.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { RecordFilter } from '../../store/records/record-search.ts'
import { must } from '../web/issue-text.ts'
import { idOf, numberOfText, timeInput, usd } from './endpoint.ts'
import { yesNo } from './fields.ts'

const word = z.string().min(1).max(300)
const leastMs = numberOfText(z.number().int().min(0).max(Number.MAX_SAFE_INTEGER))

/** The filters of a record; it must match all of them. */
export const recordFilters = {
  account: idOf('acc').optional(),
  key: idOf('key').optional(),
  model: word
    .regex(/^[^/]+\/./, must('must_be_model'))
    .optional()
    .meta({ description: 'The model that answered: <provider>/<model>' }),
  provider: word.optional(),
  channel: word.optional(),
  outcome: z
    .string()
    .transform(text => text.split(','))
    .pipe(z.array(z.enum(Object.keys(outcomes) as [Outcome, ...Outcome[]])).min(1))
    .optional()
    .meta({ description: 'How the call ended; several with commas between' }),
  error: word.optional(),
  status: numberOfText(z.number().int().min(100).max(599)).optional(),
  costMin: usd.optional(),
  costMax: usd.optional(),
  endUser: z.string().min(1).max(1_000).optional(),
  streamed: yesNo.optional(),
  dialect: word.optional().meta({ description: 'The dialect of the caller' }),
  requestedModel: word.optional().meta({ description: 'The model name that the caller used, such as a route' }),
  tag: word.optional().meta({ description: 'The name of a tag, or <name>=<value>' }),
  lossy: yesNo.optional().meta({ description: 'Whether a translation could not carry something' }),
  attemptsMin: numberOfText(z.number().int().min(1).max(100))
    .optional()
    .meta({ description: 'At least so many attempts' }),
  firstContentMsMin: leastMs.optional().meta({ description: 'The first content came after at least so long' }),
  durationMsMin: leastMs.optional().meta({ description: 'The call took at least so long' }),
}

type Conditions = z.output<z.ZodObject<typeof recordFilters>>

/** The filters of a search, which is bounded in time. */
export const searchFilters = {
  from: timeInput.optional(),
  before: timeInput.optional(),
  id: idOf('req').optional(),
  ...recordFilters,
  conversation: z
    .string()
    .regex(/^[0-9a-f]{16}$/, must('must_be_conversation'))
    .optional()
    .meta({
      description:
        'The turns of one conversation. Needs `from`, at most 7 days before `before` or now; staff give the `key`, too',
    }),
  sort: z.enum(['time', '-time']).default('-time'),
}

type Search = z.output<z.ZodObject<typeof searchFilters>>

/** A place in the order in which calls are settled. */
export const settledAfter = z
  .string()
  .regex(/^(now|\d{1,15})$/, must('must_be_seq'))
  .transform(text => (text === 'now' ? text : Number(text)))
  .meta({ description: 'The `seq` of the last call that you know; "now": only calls that are settled from now on' })

export function refuse(param: string, hint: Hint): Refusal {
  return new Refusal('field_invalid', param, { param, hint })
}

/** Members cannot search by channel. */
export function conditionsOf(query: Conditions & Pick<Search, 'conversation'>, scope: Scope | null): RecordFilter {
  const { account, key, model, costMin, costMax, tag, ...rest } = query
  if (rest.channel !== undefined && scope !== null) throw new Refusal('role_too_low', 'channel', { param: 'channel' })
  const slash = model?.indexOf('/') ?? 0
  return {
    ...rest,
    accountId: account,
    keyId: key,
    ...(model !== undefined && { model: { provider: model.slice(0, slash), name: model.slice(slash + 1) } }),
    ...(costMin !== undefined && { costMin: digitsOf('costMin', costMin) }),
    ...(costMax !== undefined && { costMax: digitsOf('costMax', costMax) }),
    ...(tag !== undefined && { tag: tagOf(tag) }),
  }
}

/** `longestMs`: how long a time one search may cover. */
export function filterOf(
  { id, from, before, sort: _sort, ...query }: Search,
  scope: Scope | null,
  { nowMs, longestMs }: { readonly nowMs: number; readonly longestMs: number },
): RecordFilter {
  // The id of a call may be up to a minute ahead, because clocks are adjusted.
  const beforeMs = before ?? nowMs + 60_000
  const fromMs = from ?? Math.max(0, beforeMs - longestMs)
  if (fromMs >= beforeMs) throw refuse('from', hintOf('from_before'))
  if (beforeMs - fromMs > longestMs) throw refuse('from', hintOf('search_days'))
  if (query.conversation !== undefined) checkConversation(query, scope, (before ?? nowMs) - (from ?? 0))
  const range = id === undefined ? { from: idAtMs(fromMs), before: idAtMs(beforeMs) } : { callId: id }
  return { ...conditionsOf(query, scope), ...range }
}

/** No index has conversations: the records of a key, or of the accounts of a member, are read, and not too many of them. */
function checkConversation({ key }: Conditions, scope: Scope | null, ms: number): void {
  if (key === undefined && scope === null) throw refuse('key', hintOf('conversation_key'))
  if (ms > bounds.conversationSearchMsMax) throw refuse('from', hintOf('conversation_days'))
}

function tagOf(text: string): NonNullable<RecordFilter['tag']> {
  const at = text.indexOf('=')
  return at < 0 ? { name: text } : { name: text.slice(0, at), value: text.slice(at + 1) }
}

function digitsOf(param: string, text: string): string {
  const amount = parseUsd(text)
  if (amount === undefined) throw refuse(param, hintOf('money_form', { name: param }))
  return String(amount)
}
