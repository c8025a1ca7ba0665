// Fields with a closed list of values in the types of the official SDKs have no other value in a translated answer,
// whatever the upstream sends.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type Anthropic from '@anthropic-ai/sdk'
import { FinishReason, ServiceTier } from '@google/genai'
import type OpenAI from 'openai'
import { checkResponse, checkStream } from '../support/open-responses.ts'
import { openTranslation, translateStream, translateWhole } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

type Json = Record<string, unknown>
type Values<T> = readonly NonNullable<T>[]

/** The values that older versions of the SDK know as well. */
const openaiTiers = ['auto', 'default', 'flex', 'scale', 'priority'] as const
const chatFinishes = ['stop', 'length', 'tool_calls', 'content_filter'] as const
const messageFinishes = ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal'] as const

/** The tiers that each SDK's types allow in an answer. */
const tiers: Readonly<Record<Dialect, readonly unknown[]>> = {
  'openai-chat': openaiTiers satisfies Values<OpenAI.ChatCompletion['service_tier']>,
  'openai-responses': openaiTiers satisfies Values<OpenAI.Responses.Response['service_tier']>,
  'anthropic-messages': ['standard', 'priority', 'batch'] satisfies Values<Anthropic.Usage['service_tier']>,
  'gemini': Object.values(ServiceTier),
  'ark': ['default', 'scale', 'fast'],
}

const finishes: Readonly<Record<Dialect, readonly unknown[]>> = {
  'openai-chat': chatFinishes satisfies Values<OpenAI.ChatCompletion.Choice['finish_reason']>,
  'openai-responses': [],
  'anthropic-messages': messageFinishes satisfies Values<Anthropic.Message['stop_reason']>,
  'gemini': Object.values(FinishReason),
  'ark': chatFinishes,
}

const answerOf = (dialect: Dialect, form: 'json' | 'sse'): string =>
  readFileSync(join(import.meta.dir, 'golden', 'upstream', `${dialect}.${form}`), 'utf8')

const fieldOf = (value: unknown, name: string): Json | undefined => (value as Json | undefined)?.[name] as Json

/** Sets the service tier in a plain answer or an event of the dialect. */
function withTier(dialect: Dialect, json: Json, tier: string): Json {
  if (dialect === 'gemini') {
    const usage = fieldOf(json, 'usageMetadata')
    return usage === undefined ? json : { ...json, usageMetadata: { ...usage, serviceTier: tier } }
  }
  if (dialect === 'anthropic-messages') {
    const message = fieldOf(json, 'message')
    if (message !== undefined) return { ...json, message: withTier(dialect, message, tier) }
    return json.usage === undefined ? json : { ...json, usage: { ...fieldOf(json, 'usage'), service_tier: tier } }
  }
  const response = fieldOf(json, 'response')
  if (response !== undefined) return { ...json, response: { ...response, service_tier: tier } }
  return { ...json, service_tier: tier }
}

const streamWith = (dialect: Dialect, tier: string): string =>
  answerOf(dialect, 'sse').replaceAll(
    /^data: (\{.*\})/gm,
    (_line, data: string) => `data: ${JSON.stringify(withTier(dialect, JSON.parse(data) as Json, tier))}`,
  )

const eventsOf = (sse: string): readonly Json[] =>
  Array.from(sse.matchAll(/^data: (\{.*\})/gm), ([, data]) => JSON.parse(data!) as Json)

/** The values of all fields with one of these names, at any depth. */
function valuesOf(json: unknown, names: readonly string[]): readonly unknown[] {
  if (Array.isArray(json)) return json.flatMap(one => valuesOf(one, names))
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([name, value]) => (names.includes(name) ? [value] : valuesOf(value, names)))
}

function expectOfficial(to: Dialect, answers: readonly unknown[]): readonly unknown[] {
  const tierValues = valuesOf(answers, ['service_tier', 'serviceTier']).filter(tier => tier !== null)
  expect(tierValues.filter(tier => !tiers[to].includes(tier))).toEqual([])
  const ends = valuesOf(answers, ['finish_reason', 'stop_reason', 'finishReason']).filter(end => end !== null)
  expect(ends.filter(end => !finishes[to].includes(end))).toEqual([])
  return tierValues
}

const words = [
  ...['standard', 'on_demand', 'ON_DEMAND', 'service_tier_priority', 'flex', 'priority', 'scale', 'batch', 'fast'],
  ...['ultrafast', 'performance', 'provisioned-throughput', 'auto', 'unspecified', 'something-new', 'constructor', ''],
]
const pairs = dialects.flatMap(from => dialects.filter(to => to !== from).map(to => [from, to] as const))

describe.each(pairs)('an answer from an upstream of %s to a caller of %s', (from, to) => {
  test.each(words)('with the tier %p has a tier that the caller knows, or reports a loss', word => {
    const whole = openTranslation(from, to)
    const text = translateWhole(whole, withTier(from, JSON.parse(answerOf(from, 'json')) as Json, word))
    const tierValues = expectOfficial(to, [JSON.parse(text)])
    const streamed = openTranslation(from, to)
    const sse = translateStream(from, streamed, [Buffer.from(streamWith(from, word))])
    expectOfficial(to, eventsOf(sse))
    if (to === 'openai-responses') {
      checkResponse(JSON.parse(text))
      checkStream(sse)
    }
    const known = /standard|demand|default|auto|unspecified/i.test(word) && !/offpeak/.test(word)
    const isLost = whole.translation.target.losses.codes.includes('answer.service_tier')
    if (known) expect([tierValues.length > 0, isLost]).toEqual([true, false])
    if (word === 'something-new' || word === 'constructor') {
      expect([tierValues.filter(tier => tier !== 'auto'), isLost]).toEqual([[], true])
    }
  })
})

test('a standard tier has the standard name of each dialect', () => {
  const ordinary = { 'openai-chat': 'default', 'openai-responses': 'default', 'ark': 'default' }
  const others = { 'anthropic-messages': 'standard', 'gemini': 'standard' }
  for (const [to, tier] of Object.entries({ ...ordinary, ...others }) as [Dialect, string][]) {
    const from = to === 'openai-chat' ? 'ark' : 'openai-chat'
    const json = withTier(from, JSON.parse(answerOf(from, 'json')) as Json, 'on_demand')
    const written: unknown = JSON.parse(translateWhole(openTranslation(from, to), json))
    expect(valuesOf(written, ['service_tier', 'serviceTier'])).toEqual([tier])
  }
})
