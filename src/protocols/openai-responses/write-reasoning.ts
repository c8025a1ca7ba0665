// Writes how much the model should think.

import type { Effort, ModelTraits } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type { ReasoningOptions } from '../neutral/conversation.ts'
import type { Json } from '../request/json-type.ts'
import type { ResponsesWriteContext } from './write-messages.ts'

/** The efforts for budgets in tokens: the first one whose limit is above the budget. */
const budgetBounds: readonly (readonly [tokens: number, effort: Effort])[] = [
  [1, 'none'],
  [2_048, 'low'],
  [8_192, 'medium'],
  [24_576, 'high'],
  [Number.POSITIVE_INFINITY, 'xhigh'],
]

const effortOfBudget = (tokens: number): Effort => budgetBounds.find(([bound]) => tokens < bound)![1]

export interface WrittenReasoning {
  readonly fields: Json
  /** The model may think, so the answer may have reasoning state for the next turn. */
  readonly thinks: boolean
}

export function writeReasoning(
  request: ReasoningOptions | undefined,
  { flavour, target }: ResponsesWriteContext,
): WrittenReasoning {
  const { traits, notes } = target
  const requested = request?.effort ?? (request?.budget === undefined ? undefined : effortOfBudget(request.budget))
  const isRequested = requested === undefined ? request?.adaptive === true : requested !== 'none'
  if (traits.thinking === 'none') {
    if (isRequested) notes.losses.add('reasoning')
    return { fields: {}, thinks: false }
  }
  const effort = requested === undefined ? undefined : knownEffort(requested, traits)
  if (effort !== requested) notes.losses.add('reasoning.effort')
  const hasOptions = effort !== undefined || isRequested || isShown(request)
  const thinks = effort !== 'none' && (traits.thinking !== undefined || hasOptions)
  if (flavour.hasThinkingSwitch) return { fields: switchFields(effort, request), thinks }
  const summary = isShown(request) && effort !== 'none' ? request!.show : undefined
  const reasoning = { ...(effort !== undefined && { effort }), ...(summary !== undefined && { summary }) }
  return { fields: Object.keys(reasoning).length === 0 ? {} : { reasoning }, thinks }
}

const isShown = (request: ReasoningOptions | undefined): boolean =>
  request?.show !== undefined && request.show !== 'none'

function switchFields(effort: Effort | undefined, request: ReasoningOptions | undefined): Json {
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  if (effort !== undefined) return { reasoning: { effort } }
  return request?.adaptive ? { thinking: { type: 'auto' } } : {}
}

/** Returns the nearest effort that the model has, and the lower one of two that are equally near. */
function knownEffort(requested: Effort, traits: ModelTraits): Effort | undefined {
  const stops = traits.stopsThinking !== false
  const known = (traits.efforts ?? efforts).filter(effort => effort !== 'none' || stops)
  if (requested === 'none' && stops) return requested
  const at = efforts.indexOf(requested)
  const near = [...known].sort((a, b) => Math.abs(efforts.indexOf(a) - at) - Math.abs(efforts.indexOf(b) - at))
  return near[0]
}
