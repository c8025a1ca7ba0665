// One answer with reasoning, text, two tool calls and usage, from an upstream of each dialect, and its translation for callers
// of each dialect. `WEIR_GOLDEN=write` writes the files that are compared here; ids and times are fixed.

import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Call } from '../../src/protocols/neutral/call.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import type { Json } from './next-request.ts'
import { nextRequests } from './next-request.ts'
import type { TestTranslation } from './test-translation.ts'
import { openTranslation, origin, translateStream, translateWhole } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

const folder = join(import.meta.dir, 'golden')
const answerOf = (dialect: Dialect, form: 'json' | 'sse'): Buffer =>
  readFileSync(join(folder, 'upstream', `${dialect}.${form}`))
const pairs = dialects.flatMap(from => dialects.map(to => [from, to] as const))

function expectGolden(name: string, text: string): void {
  const path = join(folder, name)
  if (process.env.WEIR_GOLDEN === 'write') writeFileSync(path, text)
  expect(text).toBe(readFileSync(path, 'utf8'))
}

const wholeFor = (from: Dialect, translation: TestTranslation): string =>
  translateWhole(translation, JSON.parse(String(answerOf(from, 'json'))))

/** The signature that each upstream expects back; openai-chat has none. */
const signatures: Readonly<Record<Dialect, string | undefined>> = {
  'openai-chat': undefined,
  'openai-responses': '"gAAA"',
  'anthropic-messages': '"EqQB"',
  'gemini': '"AbCd"',
  'ark': '"ArKe"',
}

function readNext(
  to: Dialect,
  answer: string,
  { keptStates: word }: TestTranslation,
): ReturnType<Codec['readConversation']> {
  const json = { model: 'p/m', ...nextRequests[to](JSON.parse(answer) as Json) }
  const call = { json, dialect: to, stream: false, choices: 1, recall: (id: string) => word.get(id) ?? [] }
  return protocols[to].codec.readConversation(call as unknown as Call)
}

type Codec = (typeof protocols)[Dialect]['codec']

describe.each(pairs)('the answer of an upstream of %s for a caller of %s', (from, to) => {
  test('is the golden file, plain', () => {
    const text = wholeFor(from, openTranslation(from, to))
    expectGolden(`${from}-${to}.json`, `${JSON.stringify(JSON.parse(text), null, 1)}\n`)
  })

  test('is the golden file, streamed', () => {
    expectGolden(`${from}-${to}.sse`, translateStream(from, openTranslation(from, to), [answerOf(from, 'sse')]))
  })

  test('P24, P25: goes back to the upstream with its whole content and signature', () => {
    const translation = openTranslation(from, to)
    const conversation = readNext(to, wholeFor(from, translation), translation)
    const notes = { losses: new Losses(), renamed: new Map<string, string>() }
    const body = protocols[from].codec.writeConversation(conversation, {
      model: 'm',
      traits: {},
      outputTokensMax: 4_096,
      cap: undefined,
      capField: 'max_tokens',
      askUsage: false,
      origin,
      media: new Map(),
      notes,
    })
    const words = ['Weather?', 'Hello world', 'Paris', 'Rome', 'get_weather', 'Sunny']
    for (const word of words) expect(body).toContain(word)
    const signature = signatures[from]
    if (signature !== undefined) expect(body).toContain(signature)
    expect(notes.losses.codes).toEqual([])
  })
})
