// Fields with a closed list of values in the official SDKs' types hold no other value in a translated answer, whatever
// the upstream says there.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type Anthropic from '@anthropic-ai/sdk'
import { FinishReason, ServiceTier } from '@google/genai'
import type OpenAI from 'openai'
import { checkResponse, checkStream } from '../support/open-responses.ts'
import { openTurning, turnStream, turnWhole } from './turning.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

type Json = Record<string, unknown>
type Listed<T> = readonly NonNullable<T>[]

/** Those that older versions of the SDK know as well. */
const openaiTiers = ['auto', 'default', 'flex', 'scale', 'priority'] as const
const chatFinishes = ['stop', 'length', 'tool_calls', 'content_filter'] as const
const messageFinishes = ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal'] as const

/** The tiers that each SDK's types allow in an answer. */
const tiers: Readonly<Record<Dialect, readonly unknown[]>> = {
  'openai-chat': openaiTiers satisfies Listed<OpenAI.ChatCompletion['service_tier']>,
  'openai-responses': openaiTiers satisfies Listed<OpenAI.Responses.Response['service_tier']>,
  'anthropic-messages': ['standard', 'priority', 'batch'] satisfies Listed<Anthropic.Usage['service_tier']>,
  'gemini': Object.values(ServiceTier),
  'ark': ['default', 'scale', 'fast'],
}

const finishes: Readonly<Record<Dialect, readonly unknown[]>> = {
  'openai-chat': chatFinishes satisfies Listed<OpenAI.ChatCompletion.Choice['finish_reason']>,
  'openai-responses': [],
  'anthropic-messages': messageFinishes satisfies Listed<Anthropic.Message['stop_reason']>,
  'gemini': Object.values(FinishReason),
  'ark': chatFinishes,
}

const answerOf = (dialect: Dialect, form: 'json' | 'sse'): string =>
  readFileSync(join(import.meta.dir, 'golden', 'upstream', `${dialect}.${form}`), 'utf8')

const fieldOf = (value: unknown, name: string): Json | undefined => (value as Json | undefined)?.[name] as Json

/** Puts a word where the upstream's dialect names its tier, in a whole answer or in an event. */
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

/** Everything that stands in a field of one of these names, anywhere in it. */
function valuesOf(json: unknown, names: readonly string[]): readonly unknown[] {
  if (Array.isArray(json)) return json.flatMap(one => valuesOf(one, names))
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([name, value]) => (names.includes(name) ? [value] : valuesOf(value, names)))
}

function expectOfficial(to: Dialect, answers: readonly unknown[]): readonly unknown[] {
  const said = valuesOf(answers, ['service_tier', 'serviceTier']).filter(tier => tier !== null)
  expect(said.filter(tier => !tiers[to].includes(tier))).toEqual([])
  const ends = valuesOf(answers, ['finish_reason', 'stop_reason', 'finishReason']).filter(end => end !== null)
  expect(ends.filter(end => !finishes[to].includes(end))).toEqual([])
  return said
}

const words = [
  ...['standard', 'on_demand', 'ON_DEMAND', 'service_tier_priority', 'flex', 'priority', 'scale', 'batch', 'fast'],
  ...['ultrafast', 'performance', 'provisioned-throughput', 'auto', 'unspecified', 'something-new', 'constructor', ''],
]
const pairs = dialects.flatMap(from => dialects.filter(to => to !== from).map(to => [from, to] as const))

describe.each(pairs)('from an upstream of %s to a caller of %s', (from, to) => {
  test.each(words)('the tier %p becomes one that the caller knows, or is reported as lost', word => {
    const whole = openTurning(from, to)
    const text = turnWhole(whole, withTier(from, JSON.parse(answerOf(from, 'json')) as Json, word))
    const said = expectOfficial(to, [JSON.parse(text)])
    const streamed = openTurning(from, to)
    const sse = turnStream(from, streamed, [Buffer.from(streamWith(from, word))])
    expectOfficial(to, eventsOf(sse))
    if (to === 'openai-responses') {
      checkResponse(JSON.parse(text))
      checkStream(sse)
    }
    const known = /standard|demand|default|auto|unspecified/i.test(word) && !/offpeak/.test(word)
    const isLost = whole.translation.ask.losses.codes.includes('answer.service_tier')
    if (known) expect([said.length > 0, isLost]).toEqual([true, false])
    if (word === 'something-new' || word === 'constructor') {
      expect([said.filter(tier => tier !== 'auto'), isLost]).toEqual([[], true])
    }
  })
})

test('an ordinary tier has the ordinary name of each dialect', () => {
  const ordinary = { 'openai-chat': 'default', 'openai-responses': 'default', 'ark': 'default' }
  const others = { 'anthropic-messages': 'standard', 'gemini': 'standard' }
  for (const [to, tier] of Object.entries({ ...ordinary, ...others }) as [Dialect, string][]) {
    const from = to === 'openai-chat' ? 'ark' : 'openai-chat'
    const json = withTier(from, JSON.parse(answerOf(from, 'json')) as Json, 'on_demand')
    const written: unknown = JSON.parse(turnWhole(openTurning(from, to), json))
    expect(valuesOf(written, ['service_tier', 'serviceTier'])).toEqual([tier])
  }
})
