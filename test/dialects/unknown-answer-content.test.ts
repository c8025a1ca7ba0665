// Unknown content in an answer does not affect the rest: whatever an upstream adds to an answer, all known content reaches
// the caller, and the rest is reported as lost.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { frameData, SseSplitter } from '../../src/http/sse.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import type { Json } from './raw-callers.ts'
import { eventsOfBody, rawCallers } from './raw-callers.ts'
import { openTranslation, translateStream, translateWhole } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

const goldenOf = (dialect: Dialect, form: 'json' | 'sse'): Buffer =>
  readFileSync(join(import.meta.dir, 'golden', 'upstream', `${dialect}.${form}`))

const pairs = dialects.flatMap(from => dialects.filter(to => to !== from).map(to => [from, to] as const))

/** Unknown objects that an upstream might add; none of them has a meaning. */
const unknownThings: readonly Json[] = [
  { type: 'hologram', hologram: { url: 'https://x.test' } },
  { hologram: { url: 'https://x.test' } },
  {},
  // Calls without a name, and parts without content.
  ...[{ type: 'tool_use', id: 'x' }, { type: 'function_call', arguments: '{}' }, { functionCall: { args: {} } }],
  ...[{ type: 'function', id: 'x', function: {} }, { type: 'text' }],
  { inlineData: { mimeType: 'image/png', data: '?' } },
]

/** Fields that are not mutated: an answer needs them, or they tell one event from another. */
const REQUIRED = new Set([
  ...['type', 'object', 'choices', 'content', 'output', 'candidates', 'message', 'delta', 'parts', 'response', 'item'],
  ...['content_block', 'part', 'index', 'output_index', 'content_index', 'status', 'role', 'text', 'id', 'call_id'],
  ...['function', 'functionCall', 'name', 'finish_reason', 'finishReason', 'stop_reason', 'tool_calls', 'args'],
  'input',
  ...['arguments', 'partial_json', 'thinking', 'signature', 'thoughtSignature', 'thought', 'summary', 'error'],
  ...['encrypted_content', 'reasoning_content', 'extra_content', 'google', 'thought_signature', 'usage'],
])

interface Mutation {
  readonly at: number
  readonly kind: 'field' | 'element' | 'null' | 'emptied'
  readonly thing: number
}

const mutations = fc.array(
  fc.record<Mutation>({
    at: fc.nat(10_000),
    kind: fc.constantFrom('field', 'element', 'null', 'emptied'),
    thing: fc.nat(unknownThings.length - 1),
  }),
  { minLength: 1, maxLength: 4 },
)

/** Every object and list in a value. */
function containersIn(value: unknown, containers: unknown[] = []): unknown[] {
  if (typeof value !== 'object' || value === null) return containers
  containers.push(value)
  for (const child of Object.values(value)) containersIn(child, containers)
  return containers
}

/** Lists of parts, to which an unknown part may be added. */
const LISTS = new Set(['content', 'parts', 'output', 'annotations', 'images', 'tool_calls'])

function listsIn(value: unknown, lists: unknown[][] = []): unknown[][] {
  if (typeof value !== 'object' || value === null) return lists
  for (const [name, child] of Object.entries(value)) {
    if (Array.isArray(child) && LISTS.has(name)) lists.push(child as unknown[])
    listsIn(child, lists)
  }
  return lists
}

function mutate(json: unknown, changes: readonly Mutation[]): unknown {
  const value = structuredClone(json)
  for (const { at, kind, thing } of changes) {
    if (kind === 'element') {
      const lists = listsIn(value)
      if (lists.length > 0) lists[at % lists.length]!.push(structuredClone(unknownThings[thing]))
      continue
    }
    const containers = containersIn(value).filter(container => !Array.isArray(container)) as Record<string, unknown>[]
    const container = containers[at % containers.length]
    if (container === undefined) continue
    if (kind === 'field') container[`x_unknown_${thing}`] = structuredClone(unknownThings[thing])
    else {
      const names = Object.keys(container).filter(name => !REQUIRED.has(name))
      const name = names[at % Math.max(1, names.length)]
      if (name === undefined) continue
      const old = container[name]
      if (kind === 'null') container[name] = null
      else if (Array.isArray(old)) container[name] = []
      else if (typeof old === 'string') container[name] = ''
    }
  }
  return value
}

function framesOf(dialect: Dialect): readonly string[] {
  const splitter = new SseSplitter(1 << 24)
  return splitter.push(goldenOf(dialect, 'sse')).flatMap(frame => frameData(frame) ?? [])
}

/** The text of a translated answer. */
const textOf = (to: Dialect, json: string): string => rawCallers[to].whole(JSON.parse(json) as Json)

describe.each(pairs)('an answer of %s for %s', (from, to) => {
  const whole = JSON.parse(goldenOf(from, 'json').toString()) as unknown
  const wanted = textOf(to, translateWhole(openTranslation(from, to), whole))
  const stream = translateStream(from, openTranslation(from, to), [goldenOf(from, 'sse')])
  const wantedStream = rawCallers[to].completed(eventsOfBody(to, stream))

  test('is complete with unknown content', () => {
    fc.assert(
      fc.property(mutations, changes => {
        const json = mutate(whole, changes)
        expect(protocols[from].readAnswer(Buffer.from(JSON.stringify(json)))).toBeDefined()
        expect(textOf(to, translateWhole(openTranslation(from, to), json))).toBe(wanted)
      }),
      { numRuns: 150 },
    )
  })

  test('is complete with unknown content, streamed', () => {
    const frames = framesOf(from)
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(1_000), mutations), { minLength: 1, maxLength: 4 }), containers => {
        const changed = [...frames]
        for (const [at, changes] of containers) {
          const index = at % changed.length
          if (changed[index] === '[DONE]') continue
          changed[index] = JSON.stringify(mutate(JSON.parse(changed[index]!), changes))
        }
        const bytes = Buffer.from(changed.map(data => `data: ${data}\n\n`).join(''))
        const translated = translateStream(from, openTranslation(from, to), [bytes])
        expect(rawCallers[to].completed(eventsOfBody(to, translated))).toBe(wantedStream)
      }),
      { numRuns: 100 },
    )
  })
})

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0' } })
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})
afterAll(() => harness.stop())

interface Result {
  readonly status: number
  readonly text: string
  readonly loss: string
}

async function ask(caller: Dialect, upstream: Dialect, stream: boolean): Promise<Result> {
  const input = { model: modelOf(upstream), stream }
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const { path, body } = rawCallers[caller]
  const answer = await fetch(harness.url + path(input), { method: 'POST', headers, body: JSON.stringify(body(input)) })
  const text = await answer.text()
  await harness.idle()
  return { status: answer.status, text, loss: answer.headers.get('x-weir-loss') ?? '' }
}

const sseOf = (events: readonly (object | string)[]): string =>
  events.map(event => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')

const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 }

/** Answers of real upstreams that were lost in earlier versions. */
const blocked: Readonly<Record<string, object>> = {
  'a candidate that a guard blocked': { candidates: [{ finishReason: 'MODEL_ARMOR', index: 0 }], usageMetadata },
  'a prompt that a guard blocked': {
    promptFeedback: { blockReason: 'MODEL_ARMOR', blockReasonMessage: 'Blocked.' },
    usageMetadata,
  },
  'safety ratings of a prompt, and no candidates': {
    promptFeedback: { safetyRatings: [{ category: 'X', probability: 'HIGH' }] },
    usageMetadata,
  },
  'no candidates': { candidates: [], usageMetadata },
  'nothing but usage': { usageMetadata, modelVersion: 'm' },
}

describe.each(Object.entries(blocked))('Gemini: %s', (_, json) => {
  test.each(dialects.map(one => [one]))('is delivered to %s as an answer', async caller => {
    harness.upstream.plan(script(...jsonAnswer(200, JSON.stringify(json))))
    const plain = await ask(caller, 'gemini', false)
    expect([plain.status, plain.text]).toEqual([200, expect.any(String)])
    harness.upstream.plan(script(streamHead, chunk(sseOf([json])), end))
    const streamed = await ask(caller, 'gemini', true)
    expect([streamed.status, streamed.text]).toEqual([200, expect.any(String)])
    expect(streamed.text).not.toContain('"error":{')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed' })
    if (caller === 'openai-chat') {
      expect(plain.text).toContain('"finish_reason":"content_filter"')
      expect(streamed.text).toContain('"finish_reason":"content_filter"')
    }
  })
})

describe('Gemini: a tool call in several events', () => {
  const piece = (functionCall: object, more: object = {}): object => ({
    candidates: [{ content: { role: 'model', parts: [{ functionCall }] }, index: 0, ...more }],
  })
  const events = [
    piece({ id: 'c1', name: 'light', willContinue: true }),
    piece({ partialArgs: [{ jsonPath: '$.brightness', numberValue: 50 }], willContinue: true }),
    piece({ partialArgs: [{ jsonPath: '$.tone', stringValue: 'wa', willContinue: true }], willContinue: true }),
    piece({ partialArgs: [{ jsonPath: '$.tone', stringValue: 'rm' }], willContinue: true }),
    piece({
      partialArgs: [
        { jsonPath: "$.rooms[0]['the name']", stringValue: 'hall' },
        { jsonPath: '$.rooms[1].on', boolValue: true },
        { jsonPath: '$.__proto__.x', nullValue: 'NULL_VALUE' },
      ],
      willContinue: true,
    }),
    piece({}),
    piece({ name: 'other', args: { a: 1 } }, { finishReason: 'STOP' }),
  ]
  const expectedArguments = JSON.parse(
    '{"brightness":50,"tone":"warm","rooms":[{"the name":"hall"},{"on":true}],"__proto__":{"x":null}}',
  ) as unknown

  test('is assembled', async () => {
    harness.upstream.plan(script(streamHead, chunk(sseOf(events)), end))
    const { status, text } = await ask('openai-chat', 'gemini', true)
    expect(status).toBe(200)
    const calls = new Map<number, { name: string; text: string }>()
    for (const data of eventsOfBody('openai-chat', text)) {
      if (data === '[DONE]') continue
      const { choices } = JSON.parse(data) as { choices: { delta: { tool_calls?: Json[] } }[] }
      for (const call of choices[0]?.delta.tool_calls ?? []) {
        const { name, arguments: args } = call.function as { name?: string; arguments?: string }
        const known = calls.get(call.index as number)
        calls.set(call.index as number, { name: known?.name ?? name!, text: (known?.text ?? '') + (args ?? '') })
      }
    }
    expect([...calls.values()].map(call => call.name)).toEqual(['light', 'other'])
    expect(JSON.parse(calls.get(0)!.text)).toEqual(expectedArguments)
    expect(JSON.parse(calls.get(1)!.text)).toEqual({ a: 1 })
    expect(text).toContain('"finish_reason":"tool_calls"')
  })

  test.each(dialects.filter(one => one !== 'gemini').map(one => [one]))('is an answer for %s', async caller => {
    harness.upstream.plan(script(streamHead, chunk(sseOf(events)), end))
    const { status, text } = await ask(caller, 'gemini', true)
    expect(status).toBe(200)
    rawCallers[caller].completed(eventsOfBody(caller, text))
    expect(text).toContain('warm')
    expect(text).toContain('hall')
  })
})

describe('chat: tool calls', () => {
  const message = (calls: readonly object[], content: string | null = 'Well.') => ({
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, finish_reason: 'tool_calls', message: { role: 'assistant', content, tool_calls: calls } }],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  })
  const functionCall = { name: 'f', arguments: '{"a":1}' }
  const callers = dialects.filter(one => one !== 'openai-chat').map(one => [one] as const)

  test.each(callers)('with an empty custom field beside the function reach %s as functions', async caller => {
    const call = { id: 'c1', type: 'function', function: functionCall, custom: { name: '' } }
    for (const stream of [false, true]) {
      const json = message([call], null)
      const { message: delta, ...rest } = json.choices[0]!
      const events = [{ ...json, choices: [{ ...rest, delta }] }, '[DONE]']
      const answer = stream ? [streamHead, chunk(sseOf(events)), end] : jsonAnswer(200, JSON.stringify(json))
      harness.upstream.plan(script(...answer))
      const { status, text } = await ask(caller, 'openai-chat', stream)
      expect(status).toBe(200)
      expect(text).toContain('"f"')
      expect(text).not.toContain('"custom')
    }
  })

  test.each(callers)('of an unknown type are reported as lost for %s, and the rest is delivered', async caller => {
    const unknown = { id: 'c0', type: 'teleport', teleport: { to: 'Paris' } }
    const both = message([unknown, { id: 'c1', function: functionCall }])
    harness.upstream.plan(script(...jsonAnswer(200, JSON.stringify(both))))
    const { status, text, loss } = await ask(caller, 'openai-chat', false)
    expect(status).toBe(200)
    expect(text).toContain('Well.')
    expect(text).toContain('"f"')
    expect(loss).toContain('tool_calls.teleport')
    harness.upstream.plan(script(...jsonAnswer(200, JSON.stringify(message([unknown])))))
    const alone = await ask(caller, 'openai-chat', false)
    expect([alone.status, alone.text.includes('Well.')]).toEqual([200, true])
    expect(alone.loss).toContain('tool_calls.teleport')
  })
})
