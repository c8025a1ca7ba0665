// Why a call went to its channel, as JSON for its record. The record lists the attempts apart.

import type { ChannelChoice, ChoiceInput } from '../../routing/choice/channel-choice.ts'
import type { Exchange } from '../exchange.ts'
import type { RouteChoice } from './choice-reason.ts'

/** With one channel there was no choice to explain. */
const onlyOne: RouteChoice = { candidates: 1 }

/** With more channels than this the rejected ones are not counted. */
const COUNTED_MAX = 16

type TryChoice = Extract<ChannelChoice, { kind: 'try' }>

/** `talks`: the call belongs to a conversation. */
export function explainChoice(
  choosing: ChoiceInput,
  { channel, reason }: TryChoice,
  hasAffinity: boolean,
): RouteChoice {
  let candidates = 0
  for (const { channels } of choosing.targets) candidates += channels.length
  if (candidates === 1) return onlyOne
  const { policy, affinityChannel } = choosing
  const affinity = affinityChannel === undefined ? 'new' : channel.id === affinityChannel ? 'kept' : 'moved'
  const dropped = candidates > COUNTED_MAX ? undefined : countDropped(choosing)
  return { candidates, policy, by: reason, ...(hasAffinity && { affinity }), ...(dropped && { dropped }) }
}

function countDropped({ targets, tokens, nowMs, accountId = 0 }: ChoiceInput): Record<string, number> | undefined {
  let dropped: Record<string, number> | undefined
  for (const { channels, name: model } of targets) {
    for (const { health } of channels) {
      const standing = health.stateFor(tokens, nowMs, { accountId, model })
      if (standing === 'open') continue
      dropped ??= {}
      dropped[standing] = (dropped[standing] ?? 0) + 1
    }
  }
  return dropped
}

/** JSON of a few hundred bytes at most. */
export function routeReasonText({ permit, attempt: { overrides }, routing: { routeChoice } }: Exchange): string | null {
  let more = permit === undefined ? '' : limitsText(permit)
  if (overrides !== undefined && overrides.length > 0) {
    more += `${more === '' ? '' : ','}"overrides":${JSON.stringify(overrides)}`
  }
  if (routeChoice === undefined) return more === '' ? null : `{${more}}`
  const text = routeChoice === onlyOne ? '"candidates":1' : JSON.stringify(routeChoice).slice(1, -1)
  return more === '' ? `{${text}}` : `{${text},${more}}`
}

/** What is left of the tightest limits. */
function limitsText({ quotas }: NonNullable<Exchange['permit']>): string {
  let text = ''
  for (const { resource, span, remaining, limit } of quotas) {
    text += `${text === '' ? '' : ','}["${resource}","${span ?? ''}",${remaining},${limit}]`
  }
  return text === '' ? '' : `"limits":[${text}]`
}
