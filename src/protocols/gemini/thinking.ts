// How much a model is to think: Google is told by a level or by a budget, as the model knows, others by a word.

import type { Effort, Traits } from '../../base/money/model-traits.ts'
import type { ReasoningWish } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import { invalid, optional } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { camelFields } from './spelling.ts'

const levels: Readonly<Record<string, Effort>> = { MINIMAL: 'minimal', LOW: 'low', MEDIUM: 'medium', HIGH: 'high' }

const levelOf: Readonly<Record<Effort, string>> = {
  none: 'MINIMAL',
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
  max: 'HIGH',
}

/** Of the cap on output. */
const shareOf: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.9,
  max: 0.95,
}

const BUDGET_MIN = 1_024
const OUTPUT_TOKENS = 65_536
/** How Google says: as much as the model likes. */
const DYNAMIC = -1

export function readThinking(config: Json): ReasoningWish | undefined {
  const path = 'generationConfig.thinkingConfig'
  const budget = optional(config, 'thinkingBudget', 'number')
  const level = optional(config, 'thinkingLevel', 'word')?.toUpperCase()
  const shows = optional(config, 'includeThoughts', 'boolean')
  const isLevel = level !== undefined && level !== 'THINKING_LEVEL_UNSPECIFIED'
  if (isLevel && budget !== undefined) throw invalid(path, 'may have a level or a budget')
  if (isLevel && !Object.hasOwn(levels, level)) throw invalid(`${path}.thinkingLevel`, 'must be a level')
  if (budget !== undefined && (!Number.isSafeInteger(budget) || budget < DYNAMIC)) {
    throw invalid(`${path}.thinkingBudget`, 'must be a number of tokens')
  }
  const wish: ReasoningWish = {
    ...(isLevel && { effort: levels[level]! }),
    ...(budget === DYNAMIC && { adaptive: true }),
    ...(budget !== undefined && budget !== DYNAMIC && { budget }),
    ...(shows !== undefined && { show: shows ? 'auto' : 'none' }),
  }
  return Object.keys(wish).length === 0 ? undefined : wish
}

/** Whether a request asks for it; undefined where it leaves that to the model. */
export function thinks(json: Json): boolean | undefined {
  const { generationConfig } = camelFields(json)
  const { thinkingConfig } = isObject(generationConfig) ? camelFields(generationConfig) : {}
  const { thinkingBudget, thinkingLevel } = isObject(thinkingConfig) ? camelFields(thinkingConfig) : {}
  const isLevel = (thinkingLevel ?? undefined) !== undefined && thinkingLevel !== 'THINKING_LEVEL_UNSPECIFIED'
  return thinkingBudget === 0 && !isLevel ? false : undefined
}

export interface ThinkingTarget {
  readonly traits: Traits
  /** The cap on output, if any is known. */
  readonly outputTokensMax: number | undefined
  readonly losses: Losses
}

export function writeThinking(wish: ReasoningWish, target: ThinkingTarget): Json | undefined {
  const { thinking: way } = target.traits
  if (way === 'none') {
    if (wish.effort !== 'none' && wish.budget !== 0) target.losses.add('reasoning')
    return undefined
  }
  const byBudget = way === 'budget' || (way === undefined && wish.effort === undefined)
  const amount = byBudget ? budgetFor(wish, target) : levelFor(wish, target.traits)
  const shows = wish.show !== undefined && wish.show !== 'none'
  const config = { ...amount, ...(shows && { includeThoughts: true }) }
  return Object.keys(config).length === 0 ? undefined : config
}

function budgetFor(wish: ReasoningWish, { traits, outputTokensMax }: ThinkingTarget): Json {
  const isOff = wish.effort === 'none' || wish.budget === 0
  if (isOff) return { thinkingBudget: traits.stopsThinking === false ? (traits.budgetMin ?? BUDGET_MIN) : 0 }
  const share = wish.effort === undefined ? undefined : (outputTokensMax ?? OUTPUT_TOKENS) * shareOf[wish.effort]
  const tokens = wish.budget ?? (share === undefined ? undefined : Math.max(BUDGET_MIN, Math.floor(share)))
  if (tokens === undefined) return wish.adaptive === true ? { thinkingBudget: DYNAMIC } : {}
  const { budgetMin = 0, budgetMax = Number.MAX_SAFE_INTEGER } = traits
  return { thinkingBudget: Math.min(Math.max(tokens, budgetMin), budgetMax) }
}

function levelFor(wish: ReasoningWish, { efforts }: Traits): Json {
  const effort = wish.effort ?? effortOf(wish.budget)
  if (effort === undefined) return {}
  const isLeast = levelOf[effort] === 'MINIMAL'
  const hasLeast = efforts === undefined || efforts.includes('minimal') || efforts.includes('none')
  return { thinkingLevel: isLeast && !hasLeast ? 'LOW' : levelOf[effort] }
}

function effortOf(budget: number | undefined): Effort | undefined {
  if (budget === undefined) return undefined
  return budget === 0 ? 'none' : budget < 2_000 ? 'low' : budget < 8_000 ? 'medium' : 'high'
}
