// Writes the settings for thinking and for the output format, depending on what the model supports.

import type { Effort, ModelTraits } from '../../base/money/model-traits.ts'
import { BUDGET_SHARE_BY_EFFORT, efforts, THINKING_BUDGET_MIN } from '../../base/money/model-traits.ts'
import type { Conversation, ReasoningOptions } from '../neutral/conversation.ts'
import { describeSchema } from '../neutral/described-schema.ts'
import type { Losses } from '../neutral/losses.ts'
import { toObjectSchema } from '../neutral/root-object.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { toSupportedSchema } from './schema.ts'

export interface WrittenThinking {
  /** Absent: the model's default applies. */
  readonly thinking?: Json
  readonly effort?: Effort
}

export interface ThinkingOptions {
  readonly reasoning: ReasoningOptions | undefined
  readonly outputTokensMax: number
  /** The model is forced to call a tool, which excludes thinking. */
  readonly isForcedToCall: boolean
  /** The last message of the assistant must begin with thinking, and does not. */
  readonly lacksThinking: boolean
}

export function writeThinking(options: ThinkingOptions, traits: ModelTraits, losses: Losses): WrittenThinking {
  const { reasoning, isForcedToCall } = options
  if (reasoning === undefined) return {}
  const isOff = reasoning.effort === 'none' || reasoning.budget === 0
  if (isOff) return disableThinking(traits, losses)
  if (traits.thinking === 'none' || isForcedToCall) {
    losses.add('reasoning')
    return {}
  }
  return usesBudget(reasoning, traits)
    ? writeBudget(options, reasoning, traits, losses)
    : writeAdaptive(reasoning, traits)
}

function disableThinking(traits: ModelTraits, losses: Losses): WrittenThinking {
  if (traits.thinking === 'none') return {}
  if (traits.stopsThinking !== false) return { thinking: { type: 'disabled' } }
  losses.add('reasoning')
  return {}
}

/** An unknown model is taken to support what the caller asks for. */
function usesBudget({ budget }: ReasoningOptions, { thinking }: ModelTraits): boolean {
  if (thinking === 'budget') return true
  return (thinking === 'either' || thinking === undefined) && budget !== undefined
}

function writeBudget(
  options: ThinkingOptions,
  reasoning: ReasoningOptions,
  traits: ModelTraits,
  losses: Losses,
): WrittenThinking {
  const { outputTokensMax, lacksThinking } = options
  const effort = reasoning.effort === undefined || reasoning.effort === 'none' ? 'high' : reasoning.effort
  const requested = reasoning.budget ?? Math.floor(outputTokensMax * BUDGET_SHARE_BY_EFFORT[effort])
  const min = Math.max(THINKING_BUDGET_MIN, traits.budgetMin ?? 0)
  const max = Math.min(traits.budgetMax ?? Number.POSITIVE_INFINITY, outputTokensMax - 1)
  if (max < min || lacksThinking) {
    losses.add('reasoning')
    return {}
  }
  return {
    thinking: { type: 'enabled', budget_tokens: Math.max(min, Math.min(requested, max)), ...writeDisplay(reasoning) },
  }
}

function writeAdaptive(reasoning: ReasoningOptions, traits: ModelTraits): WrittenThinking {
  const effort = nearestEffort(reasoning.effort ?? effortForBudget(reasoning.budget), traits)
  const effortField = effort === undefined ? {} : { effort }
  // These models take an effort and no thinking settings.
  if (traits.thinking === 'effort' || traits.thinking === 'level') return effortField
  return { thinking: { type: 'adaptive', ...writeDisplay(reasoning) }, ...effortField }
}

const writeDisplay = ({ show }: ReasoningOptions): Json => ({ display: show === 'none' ? 'omitted' : 'summarized' })

function effortForBudget(budget: number | undefined): Effort | undefined {
  if (budget === undefined) return undefined
  return budget < 2_000 ? 'low' : budget < 8_000 ? 'medium' : budget < 24_000 ? 'high' : 'xhigh'
}

/** The nearest effort that the model supports, preferably a lower one. */
function nearestEffort(effort: Effort | undefined, { efforts: modelEfforts }: ModelTraits): Effort | undefined {
  if (effort === undefined) return undefined
  const supported = efforts.filter(
    name => name !== 'none' && name !== 'minimal' && (modelEfforts?.includes(name) ?? true),
  )
  return supported.findLast(name => efforts.indexOf(name) <= efforts.indexOf(effort)) ?? supported[0]
}

/** How the model is made to follow a format: by the provider, by a tool that it must call, or by instructions. */
export type FormatMethod =
  | { readonly by: 'schema'; readonly schema: Json }
  | { readonly by: 'tool'; readonly schema: Json }
  | { readonly by: 'words'; readonly words: string }

export function chooseFormatMethod(
  conversation: Conversation,
  { traits, notes }: ConversationTarget,
): FormatMethod | undefined {
  const { format, reasoning } = conversation
  if (format === undefined) return undefined
  const holdsToSchema = format.kind === 'schema' && traits.schema !== false
  const schema = format.kind === 'schema' ? describeSchema(format) : undefined
  const supported = holdsToSchema && schema !== undefined ? toSupportedSchema(schema) : undefined
  if (supported !== undefined) {
    if (supported.isWeaker) notes.losses.add('response_format.schema')
    return { by: 'schema', schema: supported.schema }
  }
  const thinks = reasoning !== undefined && reasoning.effort !== 'none' && reasoning.budget !== 0
  const canForceTool = traits.forcedTool !== false && !(thinks && traits.thinking !== 'none')
  const toolSchema = schema !== undefined && canForceTool ? toObjectSchema(schema) : undefined
  if (toolSchema !== undefined) {
    // The model could be held to a schema, only not to this one, and a tool's schema does not bind it.
    if (holdsToSchema) notes.losses.add('response_format.schema')
    return { by: 'tool', schema: toolSchema }
  }
  notes.losses.add('response_format')
  return { by: 'words', words: writeFormatInstructions(schema) }
}

function writeFormatInstructions(schema: Json | undefined): string {
  const jsonOnly = 'Answer with JSON and nothing else: no words around it, no code fence.'
  return schema === undefined ? jsonOnly : `${jsonOnly} It must fit this JSON Schema:\n${JSON.stringify(schema)}`
}
