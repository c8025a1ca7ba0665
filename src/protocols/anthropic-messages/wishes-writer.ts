// How a model of this dialect is told to think and to be held to a schema, by what it takes.

import type { Effort, Traits } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type { Conversation, OutputFormat, ReasoningWish } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { heldSchema } from './schema.ts'

export interface Thinking {
  /** Absent: nothing is said, and the model does as it does. */
  readonly thinking?: Json
  readonly effort?: Effort
}

/** The least that a model can be told to think. */
const BUDGET_MIN = 1_024

/** How much of its output a model of a given effort thinks. */
const SHARES: Readonly<Record<Exclude<Effort, 'none'>, number>> = {
  ...{ minimal: 0.02, low: 0.1, medium: 0.3, high: 0.6, xhigh: 0.9, max: 0.95 },
}

export interface ThinkingAsk {
  readonly wish: ReasoningWish | undefined
  readonly outputTokensMax: number
  /** The model is made to call a tool, which no model does that was told to think. */
  readonly forced: boolean
  /** The calls under way have lost the thoughts that led to them. */
  readonly thoughtless: boolean
}

export function writeThinking(ask: ThinkingAsk, traits: Traits, losses: Losses): Thinking {
  const { wish, forced } = ask
  if (wish === undefined) return {}
  const off = wish.effort === 'none' || wish.budget === 0
  if (off) return writeOff(traits, losses)
  if (traits.thinking === 'none' || forced) {
    losses.add('reasoning')
    return {}
  }
  return byBudget(wish, traits) ? writeBudget(ask, wish, { traits, losses }) : writeAdaptive(wish, traits)
}

function writeOff(traits: Traits, losses: Losses): Thinking {
  if (traits.thinking === 'none') return {}
  if (traits.stopsThinking !== false) return { thinking: { type: 'disabled' } }
  losses.add('reasoning')
  return {}
}

/** Of a model that nobody knows the caller is taken at its word. */
function byBudget({ budget }: ReasoningWish, { thinking }: Traits): boolean {
  if (thinking === 'budget') return true
  return (thinking === 'either' || thinking === undefined) && budget !== undefined
}

interface Bounds {
  readonly traits: Traits
  readonly losses: Losses
}

function writeBudget(ask: ThinkingAsk, wish: ReasoningWish, { traits, losses }: Bounds): Thinking {
  const { outputTokensMax, thoughtless } = ask
  const effort = wish.effort === undefined || wish.effort === 'none' ? 'high' : wish.effort
  const wanted = wish.budget ?? Math.floor(outputTokensMax * SHARES[effort])
  const least = Math.max(BUDGET_MIN, traits.budgetMin ?? 0)
  const most = Math.min(traits.budgetMax ?? Number.POSITIVE_INFINITY, outputTokensMax - 1)
  if (most < least || thoughtless) {
    losses.add('reasoning')
    return {}
  }
  return { thinking: { type: 'enabled', budget_tokens: Math.max(least, Math.min(wanted, most)), ...shown(wish) } }
}

function writeAdaptive(wish: ReasoningWish, traits: Traits): Thinking {
  const effort = knownEffort(wish.effort ?? effortOf(wish.budget), traits)
  const told = effort === undefined ? {} : { effort }
  // By a word alone, where the model knows nothing else.
  if (traits.thinking === 'effort' || traits.thinking === 'level') return told
  return { thinking: { type: 'adaptive', ...shown(wish) }, ...told }
}

const shown = ({ show }: ReasoningWish): Json => ({ display: show === 'none' ? 'omitted' : 'summarized' })

function effortOf(budget: number | undefined): Effort | undefined {
  if (budget === undefined) return undefined
  return budget < 2_000 ? 'low' : budget < 8_000 ? 'medium' : budget < 24_000 ? 'high' : 'xhigh'
}

/** The nearest word that this model knows, rather a lower one. */
function knownEffort(effort: Effort | undefined, { efforts: known }: Traits): Effort | undefined {
  if (effort === undefined) return undefined
  const words = efforts.filter(word => word !== 'none' && word !== 'minimal' && (known?.includes(word) ?? true))
  return words.findLast(word => efforts.indexOf(word) <= efforts.indexOf(effort)) ?? words[0]
}

/** How an answer is held to a format: natively, by a tool that must be called, or by words. */
export type FormatWay =
  | { readonly by: 'schema'; readonly schema: Json }
  | { readonly by: 'tool'; readonly schema: Json }
  | { readonly by: 'words'; readonly words: string }

export function formatWay(conversation: Conversation, { traits, notes }: ConversationTarget): FormatWay | undefined {
  const { format, reasoning } = conversation
  if (format === undefined) return undefined
  if (format.kind === 'schema' && traits.schema !== false) {
    const { schema, weaker } = heldSchema(format.schema)
    if (weaker) notes.losses.add('response_format.schema')
    return { by: 'schema', schema }
  }
  const thinks = reasoning !== undefined && reasoning.effort !== 'none' && reasoning.budget !== 0
  const forcible = traits.forcedTool !== false && !(thinks && traits.thinking !== 'none')
  if (format.kind === 'schema' && forcible) return { by: 'tool', schema: format.schema }
  notes.losses.add('response_format')
  return { by: 'words', words: formatWords(format) }
}

function formatWords(format: OutputFormat): string {
  const only = 'Answer with JSON and nothing else: no words around it, no code fence.'
  return format.kind === 'json' ? only : `${only} It must fit this JSON Schema:\n${JSON.stringify(format.schema)}`
}
