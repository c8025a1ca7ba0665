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

function textOf(events: Iterable<AnswerEvent>, target = askOf(), flavour: ChatFlavour = openaiChatFlavour): string {
  const writer = new ChatEventWriter(target, flavour)
  let text = ''
  for (const event of events) text += writer.write(event)
  return text + writer.end()
}

function chunksOf(events: Iterable<AnswerEvent>, target?: AnswerTarget, flavour?: ChatFlavour): Chunk[] {
  const frames = textOf(events, target, flavour).split('\n\n')
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
const deltasOf = (answer: Answer, target?: AnswerTarget, flavour?: ChatFlavour) =>
  chunksOf(toEvents(answer), target, flavour).flatMap(chunk => chunk.choices.map(choice => choice.delta))
const writtenAnswer = (answer: Answer, target = askOf(), flavour: ChatFlavour = openaiChatFlavour) =>
  JSON.parse(writeWholeAnswer(answer, target, flavour)) as {
    choices: { message: Record<string, unknown>; finish_reason: string; logprobs: unknown }[]
    usage?: object
  }

const reasons = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call']

/** Checks the rules of the strict SDK helpers for each chunk. */
function checkLegal(chunks: readonly Chunk[], { choices, wantsUsage }: AnswerTarget): void {
  const [roles, finishes, types] = [new Set<number>(), new Map<number, string>(), new Set<string>()]
  chunks.forEach((chunk, index) => {
    expect(chunk.id).toBe('chatcmpl-req_1')
    if (chunk.choices.length === 0) expect([wantsUsage, index]).toEqual([true, chunks.length - 1])
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
          const target = askOf({ wantsUsage, choices: 3 })
          checkLegal(chunksOf(events, target, flavour), target)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('is accepted by the strict SDK helper, and equals the plain answer', async () => {
    await fc.assert(
      fc.asyncProperty(anyEvents(1), async events => {
        const lines = chunksOf(events).map(chunk => `${JSON.stringify(chunk)}\n`)
        const bytes = new Blob(lines).stream()
        const final = await ChatCompletionStream.fromReadableStream(bytes).finalChatCompletion()
        const { choices } = writtenAnswer(collectAnswer(events))
        const [streamed, plain] = [final.choices[0]!, choices[0]!]
        expect(streamed.finish_reason).toBe(plain.finish_reason as never)
        expect(streamed.message.content ?? '').toBe((plain.message.content ?? '') as string)
        expect(streamed.message.refusal ?? '').toBe((plain.message.refusal ?? '') as string)
        expect(streamed.message.tool_calls?.length ?? 0).toBe(((plain.message.tool_calls ?? []) as unknown[]).length)
      }),
    )
  })

  test('is read again with the same content', () => {
    fc.assert(
      fc.property(anyEvents(1), events => {
        const reader = new ChatEventReader(sourceOf())
        const readAgain = collectAnswer([...chunksOf(events).flatMap(chunk => reader.read(chunk)), ...reader.end()])
        const plain = readWholeAnswer(writtenAnswer(collectAnswer(events)), sourceOf())
        const contentOf = (answer: Answer) => {
          const parts = answer.choices[0]!.parts
          const texts = (kind: AnswerPart['kind']) =>
            parts.map(part => (part.kind === kind && 'text' in part ? part.text : ''))
          const calls = parts.flatMap(part => (part.kind === 'call' ? [[part.id, part.name, part.arguments]] : []))
          return { text: texts('text').join(''), refusal: texts('refusal').join(''), calls, usage: answer.usage }
        }
        expect(contentOf(readAgain)).toEqual(contentOf(plain))
        expect(contentOf(readAgain).calls).toEqual(contentOf(collectAnswer(events)).calls)
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
    fc.property(usage, original => {
      const isWritten = ([name, value]: [string, number]) => value > 0 || name === 'input' || name === 'output'
      const filled = Object.fromEntries(Object.entries(original).filter(isWritten))
      const readAgain = readUsage(writeUsage(original))
      if (readAgain === undefined) expect(Object.values(original).every(value => value === 0)).toBe(true)
      // `untimedWrites` says what the report leaves open, and is no bucket.
      else expect({ ...(readAgain as object), untimedWrites: undefined }).toEqual(filled as never)
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

test('P19: usage is streamed only to callers that requested it', () => {
  const answer = answerOf([{ kind: 'text', text: 'a' }], { usage: { input: 1, output: 2 } })
  expect(chunksOf(toEvents(answer)).at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 1 } })
  expect(textOf(toEvents(answer), askOf({ wantsUsage: false }))).not.toContain('usage')
  expect(writtenAnswer(answer, askOf({ wantsUsage: false })).usage).toMatchObject({ total_tokens: 3 })
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

  test.each(rows)('of an answer that ended with %s', (finish, plain, withCalls) => {
    const finishReasonOf = (parts: readonly AnswerPart[], target?: AnswerTarget) => {
      const answer: Answer = { choices: [{ parts, finish }] }
      const streamed = chunksOf(toEvents(answer), target)
        .flatMap(chunk => chunk.choices)
        .at(-1)?.finish_reason
      expect(streamed).toBe(writtenAnswer(answer, target).choices[0]!.finish_reason)
      return streamed as string
    }
    expect(finishReasonOf([])).toBe(plain)
    expect(finishReasonOf([call])).toBe(withCalls)
    const legacy = askOf({ json: { functions: [] } })
    expect(finishReasonOf([call], legacy)).toBe(withCalls === 'tool_calls' ? 'function_call' : withCalls)
  })

  test('does not say which stop sequence the model wrote, which is a loss', () => {
    const answer: Answer = { choices: [{ parts: [], finish: 'stop_sequence', stopSequence: 'END' }] }
    for (const flavour of [openaiChatFlavour, arkChat]) {
      const [whole, streamed] = [askOf(), askOf()]
      writtenAnswer(answer, whole, flavour)
      expect(whole.losses.codes).toEqual(['stop_sequence'])
      // The loss is known before the last event, so that a comment can report it.
      const writer = new ChatEventWriter(streamed, flavour)
      for (const event of toEvents(answer)) writer.write(event)
      expect(streamed.losses.codes).toEqual(['stop_sequence'])
    }
  })

  test('of a refusal with text is stop', () => {
    const answer: Answer = { choices: [{ parts: [{ kind: 'refusal', text: 'no' }], finish: 'filtered' }] }
    const [choice] = writtenAnswer(answer).choices
    expect(choice).toMatchObject({ finish_reason: 'stop', message: { refusal: 'no', content: null } })
  })
})

describe('a message', () => {
  test('contains text, thoughts, citations and calls', () => {
    const thinkingPart: AnswerPart = { kind: 'reasoning', text: 'hm' }
    const answer = answerOf([
      thinkingPart,
      thinkingPart,
      { kind: 'text', text: 'abc' },
      { kind: 'text', text: 'def', citations: [{ url: 'http://x/', start: 0, end: 2 }, { title: 'no address' }] },
      { kind: 'call', id: 'a', name: 'f', arguments: '' },
      { kind: 'call', id: 'b', name: 'g', arguments: 'free', custom: true },
      { kind: 'image', source: { at: 'inline', mime: 'image/png', base64: 'AAAA' } },
      { kind: 'native', dialect: 'x', what: 'odd_thing', value: 1 },
    ])
    const target = askOf()
    expect(writtenAnswer(answer, target).choices[0]?.message).toEqual({
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
    expect(target.losses.codes).toEqual(['citations', 'odd_thing'])
    const streamed = deltasOf(answer)
    expect(streamed.map(delta => delta.reasoning_content ?? '').join('')).toBe('hm\n\nhm')
    expect(streamed.find(delta => delta.annotations !== undefined)?.annotations).toEqual(
      writtenAnswer(answer).choices[0]?.message.annotations as never,
    )
  })

  test('for a legacy client has one call in `function_call`', () => {
    const target = askOf({ json: { functions: [{ name: 'f' }] } })
    const calls = ['f', 'g'].map((name): AnswerPart => ({ kind: 'call', id: name, name, arguments: '{"a":1}' }))
    expect(writtenAnswer(answerOf(calls), target).choices[0]?.message).toMatchObject({
      function_call: { name: 'f', arguments: '{"a":1}' },
    })
    expect(target.losses.codes).toEqual(['tool_calls'])
    expect(deltasOf(answerOf(calls), askOf({ json: target.json })).slice(1, -1)).toEqual([
      { function_call: { name: 'f', arguments: '' } },
      { function_call: { arguments: '{"a":1}' } },
    ])
  })

  test('is left out for a choice beyond the requested number', () => {
    const choice = { parts: [{ kind: 'text', text: 'a' }], finish: 'stop' } as const
    const target = askOf()
    expect(writtenAnswer({ choices: [choice, choice] }, target).choices).toHaveLength(1)
    const chunks = chunksOf(toEvents({ choices: [choice, choice] }), target)
    expect(chunks.flatMap(chunk => chunk.choices.map(each => each.index))).toEqual([0, 0, 0])
    expect(target.losses.codes).toEqual(['choices'])
  })
})

describe('reasoning state', () => {
  const sealed = (value: string, form: ReasoningState['form'] = 'encrypted'): ReasoningState => ({
    form,
    value,
    origin: 'o',
  })
  const thinkingPart = (value: string): AnswerPart => ({ kind: 'reasoning', text: 't', sealed: sealed(value) })
  const call = (id: string, state?: ReasoningState): AnswerPart => ({
    kind: 'call',
    id,
    name: 'f',
    arguments: '{}',
    ...(state && { sealed: state }),
  })
  const answer = answerOf([
    thinkingPart('1'),
    thinkingPart('2'),
    call('a', sealed('sig', 'thought')),
    call('b'),
    thinkingPart('3'),
    call('c'),
    thinkingPart('4'),
  ])
  const expected = [
    ['a', ['1', '2', 'sig']],
    ['c', ['4', '3']],
  ] as const

  test.each(['whole', 'streamed'])('is stored with the call after it: %s', writtenAs => {
    const calls: (readonly [string, readonly string[]])[] = []
    const target = askOf({ keep: (id, states) => calls.push([id, states.map(state => state.value)]) })
    if (writtenAs === 'whole') writeWholeAnswer(answer, target, openaiChatFlavour)
    else textOf(toEvents(answer), target)
    expect(calls).toEqual([...expected])
  })

  test('of a signed call is sent with the call', () => {
    const extra_content = { google: { thought_signature: packReasoningState(sealed('sig', 'thought')) } }
    expect(writtenAnswer(answer).choices[0]?.message.tool_calls).toMatchObject([{ id: 'a', extra_content }, {}, {}])
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
    const message = writtenAnswer(answer, askOf(), arkChat).choices[0]!.message
    const streamed = deltasOf(answer, askOf(), arkChat)
      .map(delta => delta.encrypted_content ?? '')
      .join('')
    expect(streamed).toBe(message.encrypted_content as string)
    expect(streamed.split('.').map(packed => unpackReasoningState(packed)?.value)).toEqual(['1', '2', '3', '4'])
    expect(writtenAnswer(answer).choices[0]!.message).not.toHaveProperty('encrypted_content')
  })
})
