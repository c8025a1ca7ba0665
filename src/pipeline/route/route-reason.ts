// Why a call went to its channel, as JSON for its record. The record lists the attempts apart.

import type { Choice, Choosing } from '../../routing/choice/choose.ts'
import type { Exchange } from '../exchange.ts'
import type { Chosen } from './choice-reason.ts'

/** With one channel there was no choice to explain. */
const onlyOne: Chosen = { candidates: 1 }

/** With more channels than this the rejected ones are not counted. */
const COUNTED_MAX = 16

type TryChoice = Extract<Choice, { kind: 'try' }>

/** `talks`: the call belongs to a conversation. */
export function chosenFrom(choosing: Choosing, { seat, why }: TryChoice, hasAffinity: boolean): Chosen {
  let candidates = 0
  for (const { seats } of choosing.options) candidates += seats.length
  if (candidates === 1) return onlyOne
  const { policy, keptOn } = choosing
  const affinity = keptOn === undefined ? 'new' : seat.id === keptOn ? 'kept' : 'moved'
  const dropped = candidates > COUNTED_MAX ? undefined : countDropped(choosing)
  return { candidates, policy, by: why, ...(hasAffinity && { affinity }), ...(dropped && { dropped }) }
}

function countDropped({ options, tokens, nowMs, accountId = 0 }: Choosing): Record<string, number> | undefined {
  let dropped: Record<string, number> | undefined
  for (const { seats, name: model } of options) {
    for (const { health } of seats) {
      const standing = health.standing(tokens, nowMs, { accountId, model })
      if (standing === 'open') continue
      dropped ??= {}
      dropped[standing] = (dropped[standing] ?? 0) + 1
    }
  }
  return dropped
}

/** JSON of a few hundred bytes at most. */
export function whyText({ chosen, permit, overrides }: Exchange): string | null {
  let more = permit === undefined ? '' : limitsText(permit)
  if (overrides !== undefined && overrides.length > 0) {
    more += `${more === '' ? '' : ','}"overrides":${JSON.stringify(overrides)}`
  }
  if (chosen === undefined) return more === '' ? null : `{${more}}`
  const text = chosen === onlyOne ? '"candidates":1' : JSON.stringify(chosen).slice(1, -1)
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
