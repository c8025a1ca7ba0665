// How much a model is to think, in the words of this dialect.

import type { Effort, Traits } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type { ReasoningWish } from '../neutral/conversation.ts'
import type { Json } from '../request/json-type.ts'
import type { Writing } from './write-items.ts'

/** A budget in tokens as a word: the first whose bound is above it. */
const budgetBounds: readonly (readonly [tokens: number, effort: Effort])[] = [
  [1, 'none'],
  [2_048, 'low'],
  [8_192, 'medium'],
  [24_576, 'high'],
  [Number.POSITIVE_INFINITY, 'xhigh'],
]

const ofBudget = (tokens: number): Effort => budgetBounds.find(([bound]) => tokens < bound)![1]

export interface WrittenReasoning {
  readonly fields: Json
  /** The model may think, so that there may be state to carry to the next turn. */
  readonly thinks: boolean
}

export function writeReasoning(wish: ReasoningWish | undefined, { flavour, target }: Writing): WrittenReasoning {
  const { traits, notes } = target
  const asked = wish?.effort ?? (wish?.budget === undefined ? undefined : ofBudget(wish.budget))
  const isWanted = asked === undefined ? wish?.adaptive === true : asked !== 'none'
  if (traits.thinking === 'none') {
    if (isWanted) notes.losses.add('reasoning')
    return { fields: {}, thinks: false }
  }
  const effort = asked === undefined ? undefined : knownEffort(asked, traits)
  if (effort !== asked) notes.losses.add('reasoning.effort')
  const isTold = effort !== undefined || isWanted || isShown(wish)
  const thinks = effort !== 'none' && (traits.thinking !== undefined || isTold)
  if (flavour.thinkingSwitch) return { fields: switched(effort, wish), thinks }
  const summary = isShown(wish) && effort !== 'none' ? wish!.show : undefined
  const reasoning = { ...(effort !== undefined && { effort }), ...(summary !== undefined && { summary }) }
  return { fields: Object.keys(reasoning).length === 0 ? {} : { reasoning }, thinks }
}

const isShown = (wish: ReasoningWish | undefined): boolean => wish?.show !== undefined && wish.show !== 'none'

function switched(effort: Effort | undefined, wish: ReasoningWish | undefined): Json {
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  if (effort !== undefined) return { reasoning: { effort } }
  return wish?.adaptive ? { thinking: { type: 'auto' } } : {}
}

/** The nearest word that the model knows; the lesser one of two that are as near. */
function knownEffort(asked: Effort, traits: Traits): Effort {
  const stops = traits.stopsThinking !== false
  const known = (traits.efforts ?? efforts).filter(effort => effort !== 'none' || stops)
  if (asked === 'none' && stops) return asked
  const at = efforts.indexOf(asked)
  const near = [...known].sort((a, b) => Math.abs(efforts.indexOf(a) - at) - Math.abs(efforts.indexOf(b) - at))
  return near[0] ?? asked
}
