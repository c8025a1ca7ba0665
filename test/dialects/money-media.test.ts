// Images and audio in an answer that reports no usage, or whose caller disconnects before it does: charged by what was
// delivered, at the rates of images and audio, and never for more than was held.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import { says, sendsEvents } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { headersFor, requestIn, send } from './money-calls.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

const [TEXT, PICTURE, SOUND] = [2_000, 30_000, 50_000] // nanos for a token

let harness: Harness
let key: string
beforeAll(async () => {
  const price = { input: '1', output: '2', outputImage: '30', outputAudio: '50', included: ['image_generation'] }
  // The upstream is left at once, so that the cost of an abandoned call is estimated.
  const modelLimits = { contextTokens: 32_768, outputTokensMax: 8_192, billsWhenLeft: false }
  const traits = { thinking: 'none' }
  harness = await startDialects({
    models: [
      { id: 'echo', ...modelLimits, price, traits },
      { id: 'large', ...modelLimits, price, traits: { ...traits, pictureTokens: 4_000 } },
      { id: 'apart', ...modelLimits, price: { ...price, included: [], perImage: '0.04' }, traits },
    ],
  })
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})
afterAll(() => harness.stop())

const picture = 'iVBORw0KGgo='
/** Two seconds of audio: 64 tokens. */
const sound = 'A'.repeat(128_000)

const inChat = (delta: object, finish: string | null = null): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
})
const inGemini = (part: object, more: object = {}): object => ({
  candidates: [{ index: 0, content: { role: 'model', parts: [part] }, ...more }],
})
const inlineOf = (mimeType: string, data: string): object => ({ inlineData: { mimeType, data } })
const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }
const imageItem = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: picture }
const part = { type: 'response.image_generation_call.partial_image', item_id: 'ig_1', partial_image_b64: picture }
const imageTool = { tools: [{ type: 'image_generation' }] }

/** The event, and its tokens of text, images and audio. */
type Row = readonly [string, Dialect, object, readonly [text: number, pictures: number, sound: number], object?]
const rows: readonly Row[] = [
  ['a picture', 'openai-chat', inChat({ images: [image] }), [0, 1_290, 0]],
  ['two pictures', 'openai-chat', inChat({ content: 'word', images: [image, image] }), [1, 2_580, 0]],
  ['a picture among the parts', 'openai-chat', inChat({ content: [image] }), [0, 1_290, 0]],
  ['sound', 'openai-chat', inChat({ audio: { id: 'a', data: sound } }), [0, 0, 64]],
  ['sound and its words', 'openai-chat', inChat({ audio: { data: sound, transcript: 'word' } }), [1, 0, 64]],
  ['a picture', 'ark', inChat({ images: [image] }), [0, 1_290, 0]],
  ['a part of a picture', 'openai-responses', part, [0, 1_290, 0], imageTool],
  [
    'a picture',
    'openai-responses',
    { type: 'response.output_item.done', output_index: 0, item: imageItem },
    [0, 1_290, 0],
    imageTool,
  ],
  ['sound', 'openai-responses', { type: 'response.audio.delta', delta: sound }, [0, 0, 64]],
  ['sound by its later name', 'openai-responses', { type: 'response.output_audio.delta', delta: sound }, [0, 0, 64]],
  ['a picture', 'gemini', inGemini({ inlineData: { mimeType: 'image/png', data: picture } }), [0, 1_290, 0]],
  ['sound', 'gemini', inGemini({ inlineData: { mimeType: 'audio/L16;rate=24000', data: sound } }), [0, 0, 64]],
]

async function lastCharge(): Promise<{ readonly rule: unknown; readonly output: number; readonly paid: number }> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  const row = harness.lastRecord()!
  expect(row.usage_source).toBe('estimated')
  const paid = Number(row.cost) - Number(row.input_tokens) * 1_000
  return { rule: row.rule, output: Number(row.output_tokens), paid }
}

const priceOf = ([text, pictures, audioRequests]: Row[3]): number =>
  text * TEXT + pictures * PICTURE + audioRequests * SOUND

test.each(rows)(
  '%s: a caller that disconnects after it pays for it (%s)',
  async (_what, dialect, event, tokens, more = {}) => {
    const left = Promise.withResolvers<void>()
    const eventChunk = chunk(`data: ${JSON.stringify(event)}\n\n`)
    harness.upstream.plan(script(streamHead, eventChunk, gate(left.promise), end))
    const { path, body } = requestIn(dialect, { model: modelOf(dialect), stream: true, more })
    const caller = openRaw(harness.url, post(path, headersFor(key), body))
    const last = JSON.stringify(event).slice(-40)
    await caller.until(({ text }) => text.includes(last), 'the caller has the event')
    caller.leave()
    const charge = await lastCharge()
    left.resolve() // only now: the upstream must not end before the gateway has noticed that the caller is gone
    const output = tokens[0] + tokens[1] + tokens[2]
    expect(charge).toEqual({ rule: 'left_reading', output, paid: priceOf(tokens) })
  },
)

const completed = { type: 'response.completed', response: { id: 'r', object: 'response', status: 'completed' } }
const ends: readonly (readonly [Dialect, readonly object[], Row[3], object])[] = [
  ['openai-chat', [inChat({ images: [image] }), inChat({}, 'stop')], [0, 1_290, 0], {}],
  ['openai-responses', [part, completed], [0, 1_290, 0], imageTool],
  [
    'gemini',
    [inGemini({ inlineData: { mimeType: 'image/png', data: picture } }, { finishReason: 'STOP' })],
    [0, 1_290, 0],
    {},
  ],
]

test.each(ends)('%s: a stream without usage is charged by what it delivered', async (dialect, events, tokens, more) => {
  harness.upstream.plan(sendsEvents(events))
  const wish = { model: modelOf(dialect), stream: true, more }
  await (await send(harness, key, requestIn(dialect, wish))).text()
  expect(await lastCharge()).toMatchObject({ rule: 'completed_unreported', paid: priceOf(tokens) })
})

const whole = (message: object): object => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
})
const wholes: readonly (readonly [string, Dialect, object, Row[3]])[] = [
  ['a picture', 'openai-chat', whole({ content: null, images: [image] }), [0, 1_290, 0]],
  [
    'compressed sound, by its words',
    'openai-chat',
    whole({ content: null, audio: { data: 'AAAA', transcript: 'word'.repeat(10) } }),
    [10, 0, 80],
  ],
  [
    'sound',
    'gemini',
    inGemini({ inlineData: { mimeType: 'audio/L16', data: sound } }, { finishReason: 'STOP' }),
    [0, 0, 64],
  ],
]

test.each(wholes)(
  '%s in a plain answer without usage is charged by its tokens (%s)',
  async (_what, dialect, answer, tokens) => {
    harness.upstream.plan(says(answer))
    await (await send(harness, key, requestIn(dialect, { model: modelOf(dialect) }))).text()
    expect(await lastCharge()).toMatchObject({ rule: 'completed_unreported', paid: priceOf(tokens) })
  },
)

async function chargeFor(model: string, cap: number, dialect: Dialect, event: object, more = {}): Promise<number> {
  harness.upstream.plan(sendsEvents([event, ...(dialect === 'openai-chat' ? [inChat({}, 'stop')] : [completed])]))
  const wish = { model: modelOf(dialect, model), stream: true, cap, more }
  await (await send(harness, key, requestIn(dialect, wish))).text()
  return (await lastCharge()).paid
}

test('the tokens of an image are those of the traits of its model', async () => {
  expect(await chargeFor('large', 8_000, 'openai-chat', inChat({ images: [image] }))).toBe(4_000 * PICTURE)
})

test('an answer without usage is not charged for more than was held', async () => {
  expect(await chargeFor('echo', 100, 'openai-chat', inChat({ content: 'word', images: [image] }))).toBe(100 * PICTURE)
})

test('an image with a fee is charged by the fee alone, also if only a partial image was delivered', async () => {
  expect(await chargeFor('apart', 100, 'openai-responses', part, imageTool)).toBe(40_000_000)
})

const gemini = (usageMetadata: object, part = inlineOf('image/png', picture)): object => ({
  ...inGemini(part, { finishReason: 'STOP' }),
  usageMetadata: { promptTokenCount: 10, ...usageMetadata },
})
const spokenWords = { audio: { data: sound, transcript: 'word' } }
const chat = (completion_tokens: number, message: object): object => ({
  ...whole({ content: null, ...message }),
  usage: { prompt_tokens: 10, completion_tokens, total_tokens: 10 + completion_tokens },
})

/** Reports that do not divide the output by kind. */
const undivided: readonly (readonly [string, Dialect, object, Row[3]])[] = [
  ['a picture', 'gemini', gemini({ candidatesTokenCount: 1_290, totalTokenCount: 1_300 }), [0, 1_290, 0]],
  ['a picture and text', 'gemini', gemini({ candidatesTokenCount: 1_300, totalTokenCount: 1_310 }), [10, 1_290, 0]],
  ['a small picture', 'gemini', gemini({ candidatesTokenCount: 300, totalTokenCount: 310 }), [0, 300, 0]],
  ['a picture that only the total counts', 'gemini', gemini({ totalTokenCount: 1_300 }), [0, 1_290, 0]],
  [
    'a picture after thoughts',
    'gemini',
    gemini({ candidatesTokenCount: 1_290, thoughtsTokenCount: 20, totalTokenCount: 1_320 }),
    [20, 1_290, 0],
  ],
  [
    'sound',
    'gemini',
    gemini({ candidatesTokenCount: 70, totalTokenCount: 80 }, inlineOf('audio/L16', sound)),
    [6, 0, 64],
  ],
  ['a picture', 'openai-chat', chat(1_290, { images: [image] }), [0, 1_290, 0]],
  ['sound and its words', 'openai-chat', chat(65, spokenWords), [1, 0, 64]],
]

test.each(undivided)(
  '%s is charged at its rate if the report does not divide the output (%s)',
  async (_what, dialect, answer, tokens) => {
    const model = modelOf(dialect)
    const streamed =
      dialect === 'gemini'
        ? [answer]
        : (answer as { choices: { message: object }[] }).choices.map(({ message }) => ({
            ...answer,
            ...inChat(message, 'stop'),
          }))
    for (const stream of [false, true]) {
      harness.upstream.plan(stream ? sendsEvents(streamed) : says(answer))
      await (await send(harness, key, requestIn(dialect, { model, stream }))).text()
      await harness.idle()
      expect(harness.lastRecord()).toMatchObject({
        usage_source: 'reported',
        output_tokens: tokens[0] + tokens[1] + tokens[2],
        cost: 10 * 1_000 + priceOf(tokens),
      })
    }
  },
)

test('an image of a tool is not among the reported tokens of the model', async () => {
  const usage = { input_tokens: 10, output_tokens: 2_000, total_tokens: 2_010 }
  harness.upstream.plan(says({ ...completed.response, output: [imageItem], usage }))
  const wish = { model: modelOf('openai-responses'), more: imageTool }
  await (await send(harness, key, requestIn('openai-responses', wish))).text()
  await harness.idle()
  expect(harness.lastRecord()).toMatchObject({ usage_source: 'reported', cost: 10 * 1_000 + 2_000 * TEXT })
})

/** The cumulative usage in a chunk of Gemini. */
const reports = (modality: string, tokens: number): object => ({
  usageMetadata: {
    promptTokenCount: 7,
    candidatesTokenCount: tokens,
    totalTokenCount: 7 + tokens,
    candidatesTokensDetails: [{ modality, tokenCount: tokens }],
  },
})

/** The usage covers the first part; the part after it is charged in addition, at its own rate. */
const afterUsage: readonly (readonly [string, readonly object[], Row[3]])[] = [
  [
    'a picture after a report of text',
    [
      inGemini({ text: 'word' }, {}),
      { ...inGemini({ text: 'more' }), ...reports('TEXT', 2) },
      inGemini(inlineOf('image/png', picture)),
    ],
    [2, 1_290, 0],
  ],
  [
    'a picture after a report of another',
    [
      { ...inGemini(inlineOf('image/png', picture)), ...reports('IMAGE', 1_290) },
      inGemini(inlineOf('image/png', picture)),
    ],
    [0, 2_580, 0],
  ],
  [
    'sound after a report of sound',
    [{ ...inGemini(inlineOf('audio/L16', sound)), ...reports('AUDIO', 64) }, inGemini(inlineOf('audio/L16', sound))],
    [0, 0, 128],
  ],
  [
    'a word after a report of a picture',
    [{ ...inGemini(inlineOf('image/png', picture)), ...reports('IMAGE', 1_290) }, inGemini({ text: 'wordmore' })],
    [2, 1_290, 0],
  ],
]

test.each(afterUsage)('%s is charged in addition', async (_what, events, tokens) => {
  const left = Promise.withResolvers<void>()
  const sent = [...events, inGemini({ text: '' })].map(event => chunk(`data: ${JSON.stringify(event)}\n\n`))
  harness.upstream.plan(script(streamHead, ...sent, gate(left.promise), end))
  const { path, body } = requestIn('gemini', { model: modelOf('gemini'), stream: true })
  const caller = openRaw(harness.url, post(path, headersFor(key), body))
  await caller.until(({ text }) => text.includes('"text":""'), 'the caller has all events')
  caller.leave()
  const charge = await lastCharge()
  left.resolve() // only now, as above
  expect(charge).toMatchObject({ rule: 'left_reading', paid: priceOf(tokens) })
})

const audioInput = 'A'.repeat(400_000)
const audioRequests: readonly (readonly [Dialect, object])[] = [
  [
    'openai-chat',
    {
      messages: [
        { role: 'user', content: [{ type: 'input_audio', input_audio: { data: audioInput, format: 'mp3' } }] },
      ],
    },
  ],
  [
    'openai-responses',
    { input: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: audioInput, format: 'mp3' } }] }] },
  ],
  ['gemini', { contents: [{ role: 'user', parts: [inlineOf('audio/mp3', audioInput)] }] }],
]

test.each(audioRequests)(
  '%s: audio in a request whose caller disconnects counts as a thousand tokens',
  async (dialect, more) => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const { path, body } = requestIn(dialect, { model: modelOf(dialect), stream: true, more })
    const caller = openRaw(harness.url, post(path, headersFor(key), body))
    await received
    caller.leave()
    await harness.idle()
    const { rule, input_tokens: input, usage_source: source } = harness.lastRecord()!
    expect([rule, source]).toEqual(['left_waiting', 'estimated'])
    expect(input).toBeWithin(1_000, 1_100)
  },
)

/** A partial answer with an error that blames the request. */
const cut = (usage: object): object => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  ...usage,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'word'.repeat(100) },
      finish_reason: 'error',
      error: { message: 'The prompt breaks a rule.', type: 'invalid_request_error', code: 'content_policy_violation' },
    },
  ],
})

test.each([
  ['estimated', {}, 100],
  ['reported', { usage: { prompt_tokens: 7, completion_tokens: 60, total_tokens: 67 } }, 60],
])(
  'a plain answer with an error that blames the request is charged by its content (%s)',
  async (source, usage, output) => {
    harness.upstream.plan(says(cut(usage)))
    const answer = await send(harness, key, requestIn('openai-chat', { model: modelOf('openai-chat') }))
    expect([answer.status, await answer.text()]).toEqual([200, JSON.stringify(cut(usage))])
    await harness.idle()
    const row = harness.lastRecord()!
    expect(row).toMatchObject({ rule: 'refused_answered', usage_source: source, output_tokens: output })
    expect(Number(row.cost)).toBe(Number(row.input_tokens) * 1_000 + output * TEXT)
  },
)
