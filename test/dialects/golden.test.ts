// One conversation of reasoning, text, two calls and usage, as an upstream of each dialect answers it, and what callers
// of each dialect get. `WEIR_GOLDEN=write` writes the files that are compared here; ids and times are fixed.

import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Call } from '../../src/protocols/call.ts'
import { Losses } from '../../src/protocols/losses.ts'
import { protocols } from '../../src/protocols/list.ts'
import type { Turning } from './turning.ts'
import { openTurning, origin, turnStream, turnWhole } from './turning.ts'
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

const wholeFor = (from: Dialect, turning: Turning): string => turnWhole(turning, JSON.parse(String(answerOf(from, 'json'))))

type Json = Record<string, unknown>
type Listed = readonly Json[]

/** The caller's next request, after an answer in its own dialect: that answer, and what its calls gave. */
const nextRequests: Readonly<Record<Dialect, (answer: Json) => Json>> = {
  'openai-chat': nextChat,
  'ark': nextChat,
  'openai-responses'({ output }) {
    const calls = (output as Listed).filter(item => item.type === 'function_call')
    const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'Sunny' }))
    return { input: [{ role: 'user', content: 'Weather?' }, ...(output as Listed), ...results] }
  },
  'anthropic-messages'({ content }) {
    const calls = (content as Listed).filter(block => block.type === 'tool_use')
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'Sunny' }))
    const messages = [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content },
      { role: 'user', content: results },
    ]
    return { max_tokens: 4_000, messages }
  },
  'gemini'({ candidates }) {
    const { content } = (candidates as readonly { content: { parts: Listed } }[])[0]!
    const calls = content.parts.flatMap(part => (part.functionCall === undefined ? [] : [part.functionCall as Json]))
    const parts = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: 'Sunny' } } }))
    return { contents: [{ role: 'user', parts: [{ text: 'Weather?' }] }, content, { role: 'user', parts }] }
  },
}

function nextChat({ choices }: Json): Json {
  // Many clients drop the fields that they do not know.
  const { message } = (choices as readonly { message: Json }[])[0]!
  const { role, content, tool_calls: calls } = message
  const results = (calls as Listed).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'Sunny' }))
  return { messages: [{ role: 'user', content: 'Weather?' }, { role, content, tool_calls: calls }, ...results] }
}

/** What each upstream of the golden answers wants to see again; chat signs nothing. */
const signatures: Readonly<Record<Dialect, string | undefined>> = {
  'openai-chat': undefined,
  'openai-responses': '"gAAA"',
  'anthropic-messages': '"EqQB"',
  'gemini': '"AbCd"',
  'ark': '"ArKe"',
}

function readNext(to: Dialect, answer: string, { kept }: Turning): ReturnType<Codec['readConversation']> {
  const json = { model: 'p/m', ...nextRequests[to](JSON.parse(answer) as Json) }
  const call = { json, dialect: to, stream: false, choices: 1, recall: (id: string) => kept.get(id) ?? [] }
  return protocols[to].codec.readConversation(call as unknown as Call)
}

type Codec = (typeof protocols)[Dialect]['codec']

describe.each(pairs)('from an upstream of %s to a caller of %s', (from, to) => {
  test('whole', () => {
    const text = wholeFor(from, openTurning(from, to))
    expectGolden(`${from}-${to}.json`, `${JSON.stringify(JSON.parse(text), null, 1)}\n`)
  })

  test('streamed', () => {
    expectGolden(`${from}-${to}.sse`, turnStream(from, openTurning(from, to), [answerOf(from, 'sse')]))
  })

  test('P24, P25: and back to the upstream, with all that was said and signed', () => {
    const turning = openTurning(from, to)
    const said = readNext(to, wholeFor(from, turning), turning)
    const notes = { losses: new Losses(), renamed: new Map<string, string>() }
    const body = protocols[from].codec.writeConversation(said, {
      ...{ model: 'm', traits: {}, outputTokensMax: 4_096, cap: undefined, capField: 'max_tokens', askUsage: false },
      ...{ origin, media: new Map(), notes },
    })
    for (const kept of ['Weather?', 'Hello world', 'Paris', 'Rome', 'get_weather', 'Sunny']) expect(body).toContain(kept)
    const signature = signatures[from]
    if (signature !== undefined) expect(body).toContain(signature)
    expect(notes.losses.codes).toEqual([])
  })
})
