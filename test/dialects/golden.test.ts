// One conversation of reasoning, text, two calls and usage, as an upstream of each dialect answers it, and what callers
// of each dialect get. `WEIR_GOLDEN=write` writes the files that are compared here; ids and times are fixed.

import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Call } from '../../src/protocols/neutral/call.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import type { Json } from './next-request.ts'
import { nextRequests } from './next-request.ts'
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

const wholeFor = (from: Dialect, turning: Turning): string =>
  turnWhole(turning, JSON.parse(String(answerOf(from, 'json'))))

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
    for (const kept of words) expect(body).toContain(kept)
    const signature = signatures[from]
    if (signature !== undefined) expect(body).toContain(signature)
    expect(notes.losses.codes).toEqual([])
  })
})
