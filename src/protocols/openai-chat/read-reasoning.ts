// Reads how much the model should think, from OpenAI's `reasoning_effort` and from the fields that other providers have
// added to chat.

import type { Effort } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type { ReasoningOptions } from '../neutral/conversation.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { ChatReadContext } from './read-parts.ts'
import { addLostFields } from './read-parts.ts'

/**
 * Merges all fields. If fields contradict each other, the first one in this list wins. The answer shows thoughts unless
 * the request says otherwise: OpenAI's chat has no field for this, and upstreams that have thoughts in chat show them.
 */
export function readReasoning(json: Json, reading: ChatReadContext): ReasoningOptions | undefined {
  const effort = readEffort(json.reasoning_effort, 'reasoning_effort')
  const requests: ReasoningOptions[] = [
    effort === undefined ? {} : { effort },
    readNested(json, reading),
    readSwitch(json.thinking, reading),
    readFlags(json),
    readGoogle(json.extra_body, reading),
  ]
  const merged: ReasoningOptions = Object.assign({}, ...requests.reverse())
  // An effort of none overrides all other fields.
  if (merged.effort === 'none') return { effort: 'none' }
  return Object.keys(merged).length === 0 ? undefined : { show: 'auto', ...merged }
}

function readEffort(value: unknown, at: string): Effort | undefined {
  if (value === undefined || value === null) return undefined
  const effort = efforts.find(word => word === value)
  if (effort === undefined) throw invalid(at, `must be one of ${efforts.join(', ')}`)
  return effort
}

function readBudget(value: unknown, at: string): number | undefined {
  if (value === undefined || value === null) return undefined
  if (!Number.isSafeInteger(value)) throw invalid(at, 'must be a number of tokens')
  return value as number
}

/** A negative budget lets the model decide. */
const fromBudget = (tokens: number | undefined): ReasoningOptions =>
  tokens === undefined ? {} : tokens < 0 ? { adaptive: true } : tokens === 0 ? { effort: 'none' } : { budget: tokens }

const nestedFields = { effort: 'read', max_tokens: 'read', exclude: 'read', enabled: 'read' } as const

/** `reasoning: {effort, max_tokens, exclude, enabled}`. */
function readNested(json: Json, reading: ChatReadContext): ReasoningOptions {
  const nested = readOptional(json, 'reasoning', 'object')
  if (nested === undefined) return {}
  addLostFields(reading, nested, [nestedFields, 'reasoning'])
  if (nested.enabled === false) return { effort: 'none' }
  const effort = readEffort(nested.effort, 'reasoning.effort')
  return {
    ...fromBudget(readBudget(nested.max_tokens, 'reasoning.max_tokens')),
    ...(effort !== undefined && { effort }),
    show: nested.exclude === true ? 'none' : 'auto',
  }
}

const switchFields = { type: 'read', budget_tokens: 'read' } as const

/** `thinking: {type, budget_tokens}`. */
function readSwitch(thinking: unknown, reading: ChatReadContext): ReasoningOptions {
  if (thinking === undefined || thinking === null) return {}
  if (!isObject(thinking)) throw invalid('thinking', 'must be an object')
  addLostFields(reading, thinking, [switchFields, 'thinking'])
  const budget = readBudget(thinking.budget_tokens, 'thinking.budget_tokens')
  switch (thinking.type) {
    case 'disabled':
      return { effort: 'none' }
    case 'enabled':
      return budget === undefined ? { adaptive: true } : fromBudget(budget)
    case 'auto':
    case 'adaptive':
      return { adaptive: true }
    default:
      throw invalid('thinking.type', 'must be "enabled", "disabled" or "auto"')
  }
}

/** `enable_thinking` and `thinking_budget`. */
function readFlags(json: Json): ReasoningOptions {
  const enabled = readOptional(json, 'enable_thinking', 'boolean')
  const budget = readBudget(json.thinking_budget, 'thinking_budget')
  if (enabled === false) return { effort: 'none' }
  if (budget !== undefined) return fromBudget(budget)
  return enabled === true ? { adaptive: true } : {}
}

const googleFields = { thinking_budget: 'read', thinking_level: 'read', include_thoughts: 'read' } as const

/** `extra_body: {google: {thinking_config}}`, which Google's own chat endpoint reads. */
function readGoogle(extra: unknown, reading: ChatReadContext): ReasoningOptions {
  if (!isObject(extra)) return {}
  addLostFields(reading, extra, [{ google: 'read' }, 'extra_body'])
  const google = isObject(extra.google) ? extra.google : {}
  addLostFields(reading, google, [{ thinking_config: 'read' }, 'extra_body.google'])
  const at = 'extra_body.google.thinking_config'
  const config = isObject(google.thinking_config) ? google.thinking_config : {}
  addLostFields(reading, config, [googleFields, at])
  const { thinking_level: level, include_thoughts: shows } = config
  const effort = readEffort(typeof level === 'string' ? level.toLowerCase() : level, `${at}.thinking_level`)
  return {
    ...fromBudget(readBudget(config.thinking_budget, `${at}.thinking_budget`)),
    ...(effort !== undefined && { effort }),
    ...(typeof shows === 'boolean' && { show: shows ? 'auto' : 'none' }),
  }
}
