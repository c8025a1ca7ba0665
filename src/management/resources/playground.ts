// Keys for trying out calls in a browser: they end soon, have a small budget, and are in no list of keys.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { timeText } from '../../base/time.ts'
import { playgroundKeyName } from '../../store/rules/key-operations.ts'
import { subjectOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { createPlaygroundKey } from '../services/keys.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, time } from './endpoint.ts'
import { requireDone, resourceUnknown } from './list-queries.ts'
import { positiveUsd } from './money-input.ts'

const MAX = bounds.playgroundBudgetUsdMax

const PlaygroundKey = z
  .object({
    id: z.string(),
    name: z.string(),
    account: z.string(),
    key: z.string().meta({ description: 'The text of the key, for calls' }),
    expires: time,
    budget: z.string().meta({ description: 'What the key may spend until then, in US dollars' }),
  })
  .meta({ id: 'PlaygroundKey' })

const Wanted = z.strictObject({
  budget: z
    .string()
    .default('1')
    .meta({ description: `US dollars as text, at most ${MAX}`, examples: ['1', '0.25'] }),
})

/** Checked here and not in the schema, so that the answer can repeat the text. */
function budgetOf(text: string): string {
  const { success, data } = positiveUsd.safeParse(text)
  if (success && data <= BigInt(MAX) * 1_000_000_000n) return `${data}`
  const hint = hintOf('playground_budget', { max: MAX })
  throw new Refusal('field_invalid', 'budget', { param: 'budget', hint })
}

const tooMany = (): Refusal =>
  new Refusal('state_unfit', 'keys', { hint: hintOf('keys_max', { max: bounds.keysOfAccountMax }) })
const tierMissing = (): Refusal => new Refusal('state_unfit', 'tier', { hint: hintOf('default_tier_missing') })
const raced = (): Refusal => new Refusal('state_unfit', 'raced', { hint: hintOf('key_raced') })

export const playgroundEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  endpoint({
    method: 'POST',
    path: '/api/web/accounts/{account}/playground-key',
    who: { account: 'developer' },
    summary: `Get a key for trying out calls. It works for ${bounds.playgroundKeyMsMax / 60_000} minutes and is in no list of keys.`,
    params: z.object({ account: idOf('acc') }),
    body: Wanted,
    answer: PlaygroundKey,
    async run({ params: { account }, body, scope, actor, by }) {
      const budget = budgetOf(body.budget)
      const of = subjectOf(actor)
      const wanted = { accountId: account, scope, by, of, budget: budget as `${bigint}` }
      const { text, id, expiresMs, result } = await createPlaygroundKey(parts, wanted)
      requireDone(result, { account_unknown: resourceUnknown, tier_unknown: tierMissing, too_many: tooMany, raced })
      return {
        body: {
          ...{ id: textId('key', id), name: playgroundKeyName(of), account: textId('acc', account), key: text },
          ...{ expires: timeText(expiresMs), budget: body.budget },
        },
      }
    },
  }),
]
