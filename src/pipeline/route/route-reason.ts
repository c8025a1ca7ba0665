// Why a call went where it went, in a line for its record. Of each attempt the record tells already.

import type { Choice, Choosing } from '../../routing/choice/choose.ts'
import type { Exchange } from '../exchange.ts'
import type { Chosen } from './choice-reason.ts'

/** There is nothing to tell of what could not be otherwise. */
const onlyOne: Chosen = { candidates: 1 }

/** Of more than these nobody counts the ones that were passed over. */
const LOOKED_AT_MAX = 16

type Made = Extract<Choice, { kind: 'try' }>

/** `talks`: the call is a turn of a conversation. */
export function chosenFrom(choosing: Choosing, { seat, why }: Made, talks: boolean): Chosen {
  let candidates = 0
  for (const { seats } of choosing.options) candidates += seats.length
  if (candidates === 1) return onlyOne
  const { policy, keptOn } = choosing
  const affinity = keptOn === undefined ? 'new' : seat.id === keptOn ? 'kept' : 'moved'
  const dropped = candidates > LOOKED_AT_MAX ? undefined : droppedIn(choosing)
  return { candidates, policy, by: why, ...(talks && { affinity }), ...(dropped && { dropped }) }
}

function droppedIn({ options, tokens, nowMs, accountId = 0 }: Choosing): Record<string, number> | undefined {
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

/** JSON, of a few hundred bytes at most. */
export function whyText({ chosen, permit, overrides }: Exchange): string | null {
  let more = permit === undefined ? '' : limitsText(permit)
  if (overrides !== undefined && overrides.length > 0) {
    more += `${more === '' ? '' : ','}"overrides":${JSON.stringify(overrides)}`
  }
  if (chosen === undefined) return more === '' ? null : `{${more}}`
  const told = chosen === onlyOne ? '"candidates":1' : JSON.stringify(chosen).slice(1, -1)
  return more === '' ? `{${told}}` : `{${told},${more}}`
}

/** What is left of the tightest of its limits. */
function limitsText({ quotas }: NonNullable<Exchange['permit']>): string {
  let told = ''
  for (const { resource, span, remaining, limit } of quotas) {
    told += `${told === '' ? '' : ','}["${resource}","${span ?? ''}",${remaining},${limit}]`
  }
  return told === '' ? '' : `"limits":[${told}]`
}
