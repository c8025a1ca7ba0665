// Answers with images and results of megabytes: natively every byte passes, translated the content, plain and streamed, in
// every dialect; also when they need more memory at once than there is.

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
  // An eighth of the memory is for answers: 32 MiB.
  const env = { WEIR_DRAIN_SECONDS: '0', WEIR_MEMORY_MB: '256' }
  harness = await startDialects({ env, world: { memoryBytes: () => 0 } })
  key = await harness.key({ qpm: 100_000, credit: '100000' })
})
afterAll(() => harness.stop())

const large = 'A'.repeat(3 * MIB)

/** The bytes of a stream whose text is one event. */
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
  callerDialect: CallerDialect,
  upstream: Dialect,
  stream: boolean,
): Promise<{ status: number; text: string }> {
  const caller = openRaw(harness.url, requestOf(callerDialect, key, { model: modelOf(upstream), stream }))
  await caller.whole()
  return { status: caller.status, text: caller.text }
}

const withoutComments = (text: string): string => text.replace(/^:.*\n\n/gm, '')

describe.each(dialects.map(dialect => [dialect]))('a large native answer of %s', dialect => {
  test('passes, streamed', async () => {
    const sent: string[] = []
    harness.upstream.plan(streamed(large, sent))
    const { status, text } = await ask(dialect, dialect, true)
    expect(status).toBe(200)
    const received = withoutComments(text)
    const events = eventsOfBody(dialect, received)
    // Usage that only the gateway asked for is not sent to the caller.
    const wanted = sent[0]!.split('\n\n').filter(event => event !== '' && received.includes(event))
    expect(received === sent[0]! || `${wanted.join('\n\n')}\n\n` === received).toBe(true)
    expect(rawCallers[dialect].completed(events) === `${large}end`).toBe(true)
  })

  test('passes, plain', async () => {
    const sent: string[] = []
    harness.upstream.plan(plain(large, sent))
    const { status, text } = await ask(dialect, dialect, false)
    expect([status, text === sent[0]]).toEqual([200, true])
  })
})

const pairs = dialects.flatMap(callerDialect =>
  dialects.filter(one => one !== callerDialect).map(one => [callerDialect, one] as const),
)

describe.each(pairs)('a large translated answer of %s on %s', (callerDialect, upstream) => {
  test('passes, streamed', async () => {
    harness.upstream.plan(streamed(large))
    const { status, text } = await ask(callerDialect, upstream, true)
    expect(status).toBe(200)
    expect(rawCallers[callerDialect].completed(eventsOfBody(callerDialect, text)) === `${large}end`).toBe(true)
  })

  test('passes, plain', async () => {
    harness.upstream.plan(plain(large))
    const { status, text } = await ask(callerDialect, upstream, false)
    expect(status).toBe(200)
    expect(rawCallers[callerDialect].whole(JSON.parse(text) as Json) === large).toBe(true)
  })
})

/** Images and tool results in answers of upstreams. */
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

test.each(Object.entries(shapes))('%s passes unchanged', async (_, [dialect, events]) => {
  const last = dialect === 'openai-chat' ? 'data: [DONE]\n\n' : ''
  const body = `${events.map(json => `data: ${JSON.stringify(json)}\n\n`).join('')}${last}`
  harness.upstream.plan(scripted(() => [streamHead, ...split(body, MIB), end]))
  const { status, text } = await ask(dialect, dialect, true)
  expect(status).toBe(200)
  // The gateway replaces the id of a response.
  const unnamed = (words: string): string => words.replace(/resp_\w+/g, '')
  expect(unnamed(withoutComments(text)) === unnamed(body)).toBe(true)
  await harness.idle()
  expect(harness.lastRecord()).toMatchObject({ outcome: 'completed' })
})

test('twenty large answers at once, more than the memory holds, all arrive', async () => {
  const text = 'B'.repeat(4 * MIB)
  harness.upstream.plan(...Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? streamed(text) : plain(text))))
  const answers = Array.from({ length: 20 }, (_, at) => ask('openai-chat', 'openai-chat', at % 2 === 0))
  for (const { status, text: received } of await Promise.all(answers)) {
    expect(status).toBe(200)
    expect(received.includes(text)).toBe(true)
  }
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})

test('the gateway reads no more of endless events than its memory holds', async () => {
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
  let [bytesSeen, same] = [0, 0]
  await until(() => {
    same = sent() === bytesSeen ? same + 1 : 0
    bytesSeen = sent()
    return bytesSeen > 32 * MIB && same >= 40
  }, 'the upstreams are held back')
  // Of 240 MiB: the memory for answers, the rest of the answer that continues, and the kernel buffers of each.
  expect(bytesSeen).toBeLessThan(160 * MIB)
  for (const caller of callers) caller.leave()
  ended.resolve()
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})

test.each(dialects.map(one => [one]))('%s: an event above the bound of an answer ends in an error', async dialect => {
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
