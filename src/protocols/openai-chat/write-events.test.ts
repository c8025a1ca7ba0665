// Tests writing chat answers, whole and streamed: with the strictest clients, and by reading them again.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import { anyEvents } from '../../../test/support/answers.ts'
import { askOf, sourceOf } from '../../../test/support/translation.ts'
import { arkChat } from '../ark/dialect.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import { collectAnswer, toEvents } from '../neutral/answer-collector.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import type { ChatFlavour } from './flavour.ts'
import { openaiChatFlavour } from './flavour.ts'
import { ChatEventReader, readWholeAnswer } from './read-events.ts'
import { readUsage } from './usage.ts'
import { writeWholeAnswer } from './write-answer.ts'
import { ChatEventWriter } from './write-events.ts'
import { writeUsage } from './write-usage.ts'

interface Chunk {
  readonly id: string
  readonly usage?: object | null
  readonly choices: readonly { index: number; delta: Record<string, unknown>; finish_reason: string | null }[]
}

function textOf(events: Iterable<AnswerEvent>, ask = askOf(), flavour: ChatFlavour = openaiChatFlavour): string {
  const writer = new ChatEventWriter(ask, flavour)
  let text = ''
  for (const event of events) text += writer.write(event)
  return text + writer.end()
}

function chunksOf(events: Iterable<AnswerEvent>, ask?: AnswerTarget, flavour?: ChatFlavour): Chunk[] {
  const frames = textOf(events, ask, flavour).split('\n\n')
  expect(frames.splice(-2)).toEqual(['data: [DONE]', ''])
  return frames.map(frame => {
    expect(frame).toStartWith('data: {')
    expect(frame).not.toContain('\n')
    return JSON.parse(frame.slice('data: '.length)) as Chunk
  })
}

const answerOf = (parts: readonly AnswerPart[], rest: Partial<Answer> = {}): Answer => ({
  choices: [{ parts, finish: 'stop' }],
  ...rest,
})
const deltasOf = (answer: Answer, ask?: AnswerTarget, flavour?: ChatFlavour) =>
  chunksOf(toEvents(answer), ask, flavour).flatMap(chunk => chunk.choices.map(choice => choice.delta))
const wholeOf = (answer: Answer, ask = askOf(), flavour: ChatFlavour = openaiChatFlavour) =>
  JSON.parse(writeWholeAnswer(answer, ask, flavour)) as {
    choices: { message: Record<string, unknown>; finish_reason: string; logprobs: unknown }[]
    usage?: object
  }

const reasons = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call']

/** Checks the rules of the strict SDK helpers for each chunk. */
function checkLegal(chunks: readonly Chunk[], { choices, wantsUsage }: AnswerTarget): void {
  const [roles, finishes, types] = [new Set<number>(), new Map<number, string>(), new Set<string>()]
  chunks.forEach((chunk, at) => {
    expect(chunk.id).toBe('chatcmpl-req_1')
    if (chunk.choices.length === 0) expect([wantsUsage, at]).toEqual([true, chunks.length - 1])
    else expect(chunk.usage).toBe(wantsUsage ? null : (undefined as never))
    for (const { index, delta, finish_reason: reason } of chunk.choices) {
      expect(index).toBeLessThan(choices)
      expect(finishes.has(index)).toBe(false)
      expect(delta.role).toBe(roles.has(index) ? undefined : 'assistant')
      roles.add(index)
      if (reason !== null) finishes.set(index, reason)
      for (const call of (delta.tool_calls ?? []) as { index: number; type?: string; id?: string }[]) {
        const key = `${index} ${call.index}`
        expect(call.type === undefined).toBe(types.has(key))
        expect(call.id === undefined).toBe(types.has(key))
        types.add(key)
      }
    }
  })
  expect([...finishes.keys()].toSorted()).toEqual([...roles].toSorted())
  for (const reason of finishes.values()) expect(reasons).toContain(reason)
}

describe('any valid stream of events', () => {
  test('becomes a valid chat stream', () => {
    fc.assert(
      fc.property(
        anyEvents(),
        fc.boolean(),
        fc.constantFrom(openaiChatFlavour, arkChat),
        (events, wantsUsage, flavour) => {
          const ask = askOf({ wantsUsage, choices: 3 })
          checkLegal(chunksOf(events, ask, flavour), ask)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('is accepted by the strict SDK helper, and equals the whole answer', async () => {
    await fc.assert(
      fc.asyncProperty(anyEvents(1), async events => {
        const lines = chunksOf(events).map(chunk => `${JSON.stringify(chunk)}\n`)
        const bytes = new Blob(lines).stream()
        const final = await ChatCompletionStream.fromReadableStream(bytes).finalChatCompletion()
        const { choices } = wholeOf(collectAnswer(events))
        const [told, whole] = [final.choices[0]!, choices[0]!]
        expect(told.finish_reason).toBe(whole.finish_reason as never)
        expect(told.message.content ?? '').toBe((whole.message.content ?? '') as string)
        expect(told.message.refusal ?? '').toBe((whole.message.refusal ?? '') as string)
        expect(told.message.tool_calls?.length ?? 0).toBe(((whole.message.tool_calls ?? []) as unknown[]).length)
      }),
    )
  })

  test('is the same when it is read again, except for losses', () => {
    fc.assert(
      fc.property(anyEvents(1), events => {
        const reader = new ChatEventReader(sourceOf())
        const again = collectAnswer([...chunksOf(events).flatMap(chunk => reader.read(chunk)), ...reader.end()])
        const whole = readWholeAnswer(wholeOf(collectAnswer(events)), sourceOf())
        const said = (answer: Answer) => {
          const parts = answer.choices[0]!.parts
          const texts = (kind: AnswerPart['kind']) =>
            parts.map(part => (part.kind === kind && 'text' in part ? part.text : ''))
          const calls = parts.flatMap(part => (part.kind === 'call' ? [[part.id, part.name, part.arguments]] : []))
          return { text: texts('text').join(''), refusal: texts('refusal').join(''), calls, usage: answer.usage }
        }
        expect(said(again)).toEqual(said(whole))
        expect(said(again).calls).toEqual(said(collectAnswer(events)).calls)
      }),
    )
  })
})

test('P15: usage adds up to the same buckets when it is read again', () => {
  const bucket = fc.nat(1_000)
  const cached = ['cacheRead', 'cacheWrite', 'cacheWrite1h', 'cacheReadAudio', 'cacheReadImage']
  const others = ['inputAudio', 'inputImage', 'reasoning', 'outputAudio', 'outputImage']
  const optional = Object.fromEntries([...cached, ...others].map(name => [name, bucket]))
  const usage = fc.record({ input: bucket, output: bucket, ...optional }, { requiredKeys: ['input', 'output'] })
  fc.assert(
    fc.property(usage, given => {
      const isThere = ([name, value]: [string, number]) => value > 0 || name === 'input' || name === 'output'
      const filled = Object.fromEntries(Object.entries(given).filter(isThere))
      const again = readUsage(writeUsage(given))
      if (again === undefined) expect(Object.values(given).every(value => value === 0)).toBe(true)
      else expect(again).toEqual(filled as never)
    }),
  )
  expect(writeUsage({ input: 40, cacheRead: 60, output: 30, reasoning: 10 })).toMatchObject({
    prompt_tokens: 100,
    completion_tokens: 40,
    total_tokens: 140,
    prompt_tokens_details: { cached_tokens: 60 },
    completion_tokens_details: { reasoning_tokens: 10 },
  })
})

test('P19: usage is sent only to callers that asked for it', () => {
  const answer = answerOf([{ kind: 'text', text: 'a' }], { usage: { input: 1, output: 2 } })
  expect(chunksOf(toEvents(answer)).at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 1 } })
  expect(textOf(toEvents(answer), askOf({ wantsUsage: false }))).not.toContain('usage')
  expect(wholeOf(answer, askOf({ wantsUsage: false })).usage).toMatchObject({ total_tokens: 3 })
})

describe('P37: the finish reason', () => {
  const call: AnswerPart = { kind: 'call', id: 'a', name: 'f', arguments: '' }
  const rows = [
    ['stop', 'stop', 'tool_calls'],
    ['stop_sequence', 'stop', 'tool_calls'],
    ['length', 'length', 'length'],
    ['context', 'length', 'length'],
    ['calls', 'stop', 'tool_calls'],
    ['filtered', 'content_filter', 'content_filter'],
    ['paused', 'length', 'length'],
    ['malformed', 'length', 'length'],
    ['other', 'length', 'length'],
  ] as const

  test.each(rows)('%s', (finish, plain, withCalls) => {
    const tell = (parts: readonly AnswerPart[], ask?: AnswerTarget) => {
      const answer: Answer = { choices: [{ parts, finish }] }
      const streamed = chunksOf(toEvents(answer), ask)
        .flatMap(chunk => chunk.choices)
        .at(-1)?.finish_reason
      expect(streamed).toBe(wholeOf(answer, ask).choices[0]!.finish_reason)
      return streamed as string
    }
    expect(tell([])).toBe(plain)
    expect(tell([call])).toBe(withCalls)
    const legacy = askOf({ json: { functions: [] } })
    expect(tell([call], legacy)).toBe(withCalls === 'tool_calls' ? 'function_call' : withCalls)
  })

  test('of a refusal with text is like any other', () => {
    const answer: Answer = { choices: [{ parts: [{ kind: 'refusal', text: 'no' }], finish: 'filtered' }] }
    const [choice] = wholeOf(answer).choices
    expect(choice).toMatchObject({ finish_reason: 'stop', message: { refusal: 'no', content: null } })
  })
})

describe('a message', () => {
  test('contains text, thoughts, citations and calls', () => {
    const thought: AnswerPart = { kind: 'reasoning', text: 'hm' }
    const answer = answerOf([
      thought,
      thought,
      { kind: 'text', text: 'abc' },
      { kind: 'text', text: 'def', citations: [{ url: 'http://x/', start: 0, end: 2 }, { title: 'no address' }] },
      { kind: 'call', id: 'a', name: 'f', arguments: '' },
      { kind: 'call', id: 'b', name: 'g', arguments: 'free', custom: true },
      { kind: 'image', source: { at: 'inline', mime: 'image/png', base64: 'AAAA' } },
      { kind: 'native', dialect: 'x', what: 'odd_thing', value: 1 },
    ])
    const ask = askOf()
    expect(wholeOf(answer, ask).choices[0]?.message).toEqual({
      role: 'assistant',
      content: 'abcdef',
      refusal: null,
      reasoning_content: 'hm\n\nhm',
      annotations: [
        { type: 'url_citation', url_citation: { start_index: 3, end_index: 5, title: '', url: 'http://x/' } },
      ],
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: 'b', type: 'custom', custom: { name: 'g', input: 'free' } },
      ],
      images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    })
    expect(ask.losses.codes).toEqual(['citations', 'odd_thing'])
    const streamed = deltasOf(answer)
    expect(streamed.map(delta => delta.reasoning_content ?? '').join('')).toBe('hm\n\nhm')
    expect(streamed.find(delta => delta.annotations !== undefined)?.annotations).toEqual(
      wholeOf(answer).choices[0]?.message.annotations as never,
    )
  })

  test('for a legacy client has one call in `function_call`', () => {
    const ask = askOf({ json: { functions: [{ name: 'f' }] } })
    const calls = ['f', 'g'].map((name): AnswerPart => ({ kind: 'call', id: name, name, arguments: '{"a":1}' }))
    expect(wholeOf(answerOf(calls), ask).choices[0]?.message).toMatchObject({
      function_call: { name: 'f', arguments: '{"a":1}' },
    })
    expect(ask.losses.codes).toEqual(['tool_calls'])
    expect(deltasOf(answerOf(calls), askOf({ json: ask.json })).slice(1, -1)).toEqual([
      { function_call: { name: 'f', arguments: '' } },
      { function_call: { arguments: '{"a":1}' } },
    ])
  })

  test('is left out for a choice beyond the requested number', () => {
    const choice = { parts: [{ kind: 'text', text: 'a' }], finish: 'stop' } as const
    const ask = askOf()
    expect(wholeOf({ choices: [choice, choice] }, ask).choices).toHaveLength(1)
    const chunks = chunksOf(toEvents({ choices: [choice, choice] }), ask)
    expect(chunks.flatMap(chunk => chunk.choices.map(each => each.index))).toEqual([0, 0, 0])
    expect(ask.losses.codes).toEqual(['choices'])
  })
})

describe('reasoning state', () => {
  const sealed = (value: string, form: ReasoningState['form'] = 'encrypted'): ReasoningState => ({
    form,
    value,
    origin: 'o',
  })
  const thought = (value: string): AnswerPart => ({ kind: 'reasoning', text: 't', sealed: sealed(value) })
  const call = (id: string, own?: ReasoningState): AnswerPart => ({
    kind: 'call',
    id,
    name: 'f',
    arguments: '{}',
    ...(own && { sealed: own }),
  })
  const answer = answerOf([
    thought('1'),
    thought('2'),
    call('a', sealed('sig', 'thought')),
    call('b'),
    thought('3'),
    call('c'),
    thought('4'),
  ])
  const kept = [
    ['a', ['1', '2', 'sig']],
    ['c', ['4', '3']],
  ] as const

  test.each(['whole', 'streamed'])('is stored with the call after it: %s', way => {
    const calls: (readonly [string, readonly string[]])[] = []
    const ask = askOf({ keep: (id, states) => calls.push([id, states.map(state => state.value)]) })
    if (way === 'whole') writeWholeAnswer(answer, ask, openaiChatFlavour)
    else textOf(toEvents(answer), ask)
    expect(calls).toEqual([...kept])
  })

  test('of a signed call is sent with the call', () => {
    const extra_content = { google: { thought_signature: packReasoningState(sealed('sig', 'thought')) } }
    expect(wholeOf(answer).choices[0]?.message.tool_calls).toMatchObject([{ id: 'a', extra_content }, {}, {}])
    const first = deltasOf(answer).find(delta => delta.tool_calls !== undefined)
    expect(first?.tool_calls).toMatchObject([{ id: 'a', extra_content }])
    const late: AnswerEvent[] = [
      { kind: 'start' },
      { kind: 'open', index: 0, choice: 0, part: 'call', id: 'a', name: 'f' },
      { kind: 'close', index: 0, sealed: sealed('sig', 'thought') },
      { kind: 'finish', choice: 0, finish: 'calls' },
    ]
    const deltas = chunksOf(late).flatMap(chunk => chunk.choices.map(choice => choice.delta))
    expect(deltas.at(-2)?.tool_calls).toEqual([{ index: 0, function: { arguments: '' }, extra_content }])
  })

  test("is complete in Ark's messages", () => {
    const message = wholeOf(answer, askOf(), arkChat).choices[0]!.message
    const streamed = deltasOf(answer, askOf(), arkChat)
      .map(delta => delta.encrypted_content ?? '')
      .join('')
    expect(streamed).toBe(message.encrypted_content as string)
    expect(streamed.split('.').map(packed => unpackReasoningState(packed)?.value)).toEqual(['1', '2', '3', '4'])
    expect(wholeOf(answer).choices[0]!.message).not.toHaveProperty('encrypted_content')
  })
})
