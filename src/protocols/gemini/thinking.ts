// Reads and writes how much a model should think. Google takes a level or a token budget, depending on the model;
// other dialects take an effort.

import type { Effort, ModelTraits } from '../../base/money/model-traits.ts'
import { BUDGET_SHARE_BY_EFFORT, THINKING_BUDGET_MIN } from '../../base/money/model-traits.ts'
import type { ReasoningOptions } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { toCamelCaseFields } from './field-names.ts'

const EFFORT_BY_LEVEL: Readonly<Record<string, Effort>> = {
  MINIMAL: 'minimal',
  LOW: 'low',
  MEDIUM: 'medium',
  HIGH: 'high',
}

const LEVEL_BY_EFFORT: Readonly<Record<Effort, string>> = {
  none: 'MINIMAL',
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
  max: 'HIGH',
}

const OUTPUT_TOKENS_DEFAULT = 65_536
/** The budget that lets the model decide. */
const DYNAMIC_BUDGET = -1

export function readThinking(config: Json): ReasoningOptions | undefined {
  const path = 'generationConfig.thinkingConfig'
  const budget = readOptional(config, 'thinkingBudget', 'number')
  const level = readOptional(config, 'thinkingLevel', 'word')?.toUpperCase()
  const shows = readOptional(config, 'includeThoughts', 'boolean')
  const hasLevel = level !== undefined && level !== 'THINKING_LEVEL_UNSPECIFIED'
  if (hasLevel && budget !== undefined) throw invalid(path, 'may have thinkingLevel or thinkingBudget, not both')
  if (hasLevel && !Object.hasOwn(EFFORT_BY_LEVEL, level))
    throw invalid(`${path}.thinkingLevel`, 'must be MINIMAL, LOW, MEDIUM or HIGH')
  if (budget !== undefined && (!Number.isSafeInteger(budget) || budget < DYNAMIC_BUDGET)) {
    throw invalid(
      `${path}.thinkingBudget`,
      'must be an integer: a number of tokens, 0 for none, -1 to let the model decide',
    )
  }
  const wish: ReasoningOptions = {
    ...(hasLevel && { effort: EFFORT_BY_LEVEL[level]! }),
    ...(budget === DYNAMIC_BUDGET && { adaptive: true }),
    ...(budget !== undefined && budget !== DYNAMIC_BUDGET && { budget }),
    ...(shows !== undefined && { show: shows ? 'auto' : 'none' }),
  }
  return Object.keys(wish).length === 0 ? undefined : wish
}

/** Whether a request asks the model to think; undefined where the request leaves that to the model. */
export function asksForThinking(json: Json): boolean | undefined {
  const { generationConfig } = toCamelCaseFields(json)
  const { thinkingConfig } = isObject(generationConfig) ? toCamelCaseFields(generationConfig) : {}
  const { thinkingBudget, thinkingLevel } = isObject(thinkingConfig) ? toCamelCaseFields(thinkingConfig) : {}
  const hasLevel = (thinkingLevel ?? undefined) !== undefined && thinkingLevel !== 'THINKING_LEVEL_UNSPECIFIED'
  return thinkingBudget === 0 && !hasLevel ? false : undefined
}

export interface ThinkingTarget {
  readonly traits: ModelTraits
  /** The cap on output, if any is known. */
  readonly outputTokensMax: number | undefined
  readonly losses: Losses
}

export function writeThinking(wish: ReasoningOptions, target: ThinkingTarget): Json | undefined {
  const { thinking: mode, stopsThinking } = target.traits
  const isOff = wish.effort === 'none' || wish.budget === 0
  if (mode === 'none') {
    if (!isOff) target.losses.add('reasoning')
    return undefined
  }
  if (isOff && stopsThinking === false) target.losses.add('reasoning')
  const byBudget = mode === 'budget' || (mode === undefined && wish.effort === undefined)
  const amount = byBudget ? budgetFor(wish, target) : levelFor(wish, target.traits)
  const shows = wish.show !== undefined && wish.show !== 'none'
  const config = { ...amount, ...(shows && { includeThoughts: true }) }
  return Object.keys(config).length === 0 ? undefined : config
}

function budgetFor(wish: ReasoningOptions, { traits, outputTokensMax }: ThinkingTarget): Json {
  const isOff = wish.effort === 'none' || wish.budget === 0
  if (isOff) return { thinkingBudget: traits.stopsThinking === false ? (traits.budgetMin ?? THINKING_BUDGET_MIN) : 0 }
  const share =
    wish.effort === undefined
      ? undefined
      : (outputTokensMax ?? OUTPUT_TOKENS_DEFAULT) * BUDGET_SHARE_BY_EFFORT[wish.effort]
  const tokens = wish.budget ?? (share === undefined ? undefined : Math.max(THINKING_BUDGET_MIN, Math.floor(share)))
  if (tokens === undefined) return wish.adaptive === true ? { thinkingBudget: DYNAMIC_BUDGET } : {}
  const { budgetMin = 0, budgetMax = Number.MAX_SAFE_INTEGER } = traits
  return { thinkingBudget: Math.min(Math.max(tokens, budgetMin), budgetMax) }
}

function levelFor(wish: ReasoningOptions, { efforts }: ModelTraits): Json {
  const effort = wish.effort ?? effortForBudget(wish.budget)
  if (effort === undefined) return {}
  const isMinimal = LEVEL_BY_EFFORT[effort] === 'MINIMAL'
  const takesMinimal = efforts === undefined || efforts.includes('minimal') || efforts.includes('none')
  return { thinkingLevel: isMinimal && !takesMinimal ? 'LOW' : LEVEL_BY_EFFORT[effort] }
}

function effortForBudget(budget: number | undefined): Effort | undefined {
  if (budget === undefined) return undefined
  return budget === 0 ? 'none' : budget < 2_000 ? 'low' : budget < 8_000 ? 'medium' : 'high'
}
