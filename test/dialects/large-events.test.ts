// Answers with pictures and results of megabytes: natively every byte of them passes, translated what they say, plain
// and streamed, in every dialect; also when more of them come at a time than there is memory for.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildFramesTo, buildReplyTo, jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import { findDialect } from '../../tools/fake-upstream/dialects.ts'
import type { ReceivedRequest } from '../../tools/fake-upstream/request.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, scripted, split } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { CallerDialect, Json } from './raw-callers.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

const MIB = 1024 * 1024

let harness: Harness
let key: string
beforeAll(async () => {
  // An eighth of it is for answers: 32 MiB.
  const env = { WEIR_DRAIN_SECONDS: '0', WEIR_MEMORY_MB: '256' }
  harness = await startDialects({ env, world: { memoryBytes: () => 0 } })
  key = await harness.key({ qpm: 100_000, credit: '100000' })
})
afterAll(() => harness.stop())

const large = 'A'.repeat(3 * MIB)

/** The bytes of a stream with a text that is one event. */
const streamOf = (request: ReceivedRequest, text: string): string =>
  Array.from(buildFramesTo(request, [text, 'end']), formatEvent).join('')

const streamed = (text: string, sent: string[] = []): Script =>
  scripted(function* steps(request) {
    const body = streamOf(request, text)
    sent.push(body)
    yield streamHead
    yield* split(body, 256 * 1024)
    yield end
  })

const plain = (text: string, sent: string[] = []): Script =>
  scripted(request => {
    const body = findDialect(request).plain(buildReplyTo(request, [text]))
    sent.push(body)
    return jsonAnswer(200, body)
  })

async function ask(
  speaker: CallerDialect,
  upstream: Dialect,
  stream: boolean,
): Promise<{ status: number; text: string }> {
  const caller = openRaw(harness.url, requestOf(speaker, key, { model: modelOf(upstream), stream }))
  await caller.whole()
  return { status: caller.status, text: caller.text }
}

const withoutComments = (text: string): string => text.replace(/^:.*\n\n/gm, '')

describe.each(dialects.map(dialect => [dialect]))('%s natively', dialect => {
  test('streamed', async () => {
    const sent: string[] = []
    harness.upstream.plan(streamed(large, sent))
    const { status, text } = await ask(dialect, dialect, true)
    expect(status).toBe(200)
    const got = withoutComments(text)
    const events = eventsOfBody(dialect, got)
    // Usage that we asked for and the caller did not stays with us.
    const wanted = sent[0]!.split('\n\n').filter(event => event !== '' && got.includes(event))
    expect(got === sent[0]! || `${wanted.join('\n\n')}\n\n` === got).toBe(true)
    expect(rawCallers[dialect].completed(events) === `${large}end`).toBe(true)
  })

  test('plain', async () => {
    const sent: string[] = []
    harness.upstream.plan(plain(large, sent))
    const { status, text } = await ask(dialect, dialect, false)
    expect([status, text === sent[0]]).toEqual([200, true])
  })
})

const pairs = dialects.flatMap(speaker => dialects.filter(one => one !== speaker).map(one => [speaker, one] as const))

describe.each(pairs)('%s on %s', (speaker, upstream) => {
  test('streamed', async () => {
    harness.upstream.plan(streamed(large))
    const { status, text } = await ask(speaker, upstream, true)
    expect(status).toBe(200)
    expect(rawCallers[speaker].completed(eventsOfBody(speaker, text)) === `${large}end`).toBe(true)
  })

  test('plain', async () => {
    harness.upstream.plan(plain(large))
    const { status, text } = await ask(speaker, upstream, false)
    expect(status).toBe(200)
    expect(rawCallers[speaker].whole(JSON.parse(text) as Json) === large).toBe(true)
  })
})

/** What upstreams send of pictures, and what a tool of theirs gave. */
const picture = 'iVBORw0KGgo'.repeat(300_000)
const shapes: Readonly<Record<string, readonly [Dialect, readonly object[]]>> = {
  'a picture of a chat': [
    'openai-chat',
    [
      {
        id: 'x',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [
          {
            index: 0,
            finish_reason: null,
            delta: {
              role: 'assistant',
              content: '',
              images: [{ type: 'image_url', index: 0, image_url: { url: `data:image/png;base64,${picture}` } }],
            },
          },
        ],
      },
      {
        id: 'x',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, finish_reason: 'stop', delta: {} }],
      },
    ],
  ],
  'a picture of Gemini': [
    'gemini',
    [
      {
        candidates: [
          {
            content: { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data: picture } }] },
            index: 0,
          },
        ],
      },
      {
        candidates: [{ content: { role: 'model', parts: [{ text: 'x' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1290, totalTokenCount: 1293 },
      },
    ],
  ],
  'a result of a tool of Anthropic': [
    'anthropic-messages',
    [
      {
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          content: [],
          model: 'm',
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 3, output_tokens: 1 },
        },
      },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'web_fetch_tool_result', tool_use_id: 'srvtoolu_1', content: { data: picture } },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ],
  ],
  'a picture of responses': [
    'openai-responses',
    [
      { type: 'response.created', sequence_number: 0, response: { id: 'resp_1', object: 'response', output: [] } },
      {
        type: 'response.output_item.done',
        sequence_number: 1,
        output_index: 0,
        item: { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: picture },
      },
      {
        type: 'response.completed',
        sequence_number: 2,
        response: {
          id: 'resp_1',
          object: 'response',
          status: 'completed',
          model: 'm',
          created_at: 1,
          output: [{ id: 'ig_1', type: 'image_generation_call', status: 'completed', result: picture }],
          usage: { input_tokens: 3, output_tokens: 9, total_tokens: 12 },
        },
      },
    ],
  ],
}

test.each(Object.entries(shapes))('%s passes as it came', async (_, [dialect, events]) => {
  const last = dialect === 'openai-chat' ? 'data: [DONE]\n\n' : ''
  const body = `${events.map(json => `data: ${JSON.stringify(json)}\n\n`).join('')}${last}`
  harness.upstream.plan(scripted(() => [streamHead, ...split(body, MIB), end]))
  const { status, text } = await ask(dialect, dialect, true)
  expect(status).toBe(200)
  // The name of a response is ours.
  const unnamed = (words: string): string => words.replace(/resp_\w+/g, '')
  expect(unnamed(withoutComments(text)) === unnamed(body)).toBe(true)
  await harness.idle()
  expect(harness.records().at(-1)).toMatchObject({ outcome: 'completed' })
})

test('twenty at a time, which is more than there is memory for', async () => {
  const text = 'B'.repeat(4 * MIB)
  harness.upstream.plan(...Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? streamed(text) : plain(text))))
  const asked = Array.from({ length: 20 }, (_, at) => ask('openai-chat', 'openai-chat', at % 2 === 0))
  for (const { status, text: got } of await Promise.all(asked)) {
    expect(status).toBe(200)
    expect(got.includes(text)).toBe(true)
  }
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})

test('of events that do not end, no more is read than there is memory for', async () => {
  const piece = Buffer.alloc(MIB / 4, 'x')
  const ended = Promise.withResolvers<void>()
  const long = scripted(function* steps() {
    yield streamHead
    yield chunk('data: {"x":"')
    for (let at = 0; at < 4 * 20; at++) yield chunk(piece)
    yield gate(ended.promise)
  })
  const before = harness.upstream.requests.length
  harness.upstream.plan(...Array.from({ length: 12 }, () => long))
  const callers = Array.from({ length: 12 }, () =>
    openRaw(harness.url, requestOf('openai-chat', key, { model: modelOf('openai-chat'), stream: true })),
  )
  const sent = (): number =>
    harness.upstream.requests.slice(before).reduce((sum, { bytesWritten }) => sum + bytesWritten, 0)
  let [seen, same] = [0, 0]
  await until(() => {
    same = sent() === seen ? same + 1 : 0
    seen = sent()
    return seen > 32 * MIB && same >= 40
  }, 'the upstreams are held back')
  // Of 240 MiB: what there is room for, the rest of the one that goes on, and what the kernel takes of each.
  expect(seen).toBeLessThan(160 * MIB)
  for (const caller of callers) caller.leave()
  ended.resolve()
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})

test.each(dialects.map(one => [one]))('%s: one that is longer than any answer ends as an error', async dialect => {
  const piece = Buffer.alloc(MIB, 'x')
  harness.upstream.plan(
    scripted(function* steps(request) {
      yield streamHead
      const [first, second] = Array.from(buildFramesTo(request, ['Hello', 'x'.repeat(9)]), formatEvent)
      yield chunk(first! + second!)
      yield chunk('data: {"x":"')
      for (let at = 0; at < 34; at++) yield chunk(piece)
      yield end
    }),
  )
  const { status, text } = await ask(dialect, dialect, true)
  if (status === 200) rawCallers[dialect].failed(eventsOfBody(dialect, text))
  else expect(rawCallers[dialect].error(JSON.parse(text), 502).message).not.toBe('')
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})
