// Audio and images without a usage report: their tokens are estimated from the request, and charged at the rates of
// audio and images. So leaving before the report is not cheaper than staying.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, gate, head, script } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { wav } from '../support/sample-media.ts'
import { says, saysText, sendsBytes, sendsEvents } from './upstream.ts'

const [TEXT, WRITTEN, HEARD, PICTURE, SOUND] = [1_000, 2_000, 6_000, 30_000, 50_000] // nano-dollars per token
const price = { input: '1', output: '2', outputImage: '30', outputAudio: '50' }
const provider = {
  id: 'brook',
  name: 'Brook',
  baseUrl: 'http://127.0.0.1:9',
  baseUrlEnv: 'BROOK_URL',
  keyEnv: 'BROOK_KEY',
  speaks: {
    'openai-chat': '/chat/completions',
    'openai-speech': '/audio/speech',
    'openai-transcription': '/audio/transcriptions',
    'openai-images': '/images/generations',
    'ark-images': '/ark/images/generations',
    'openai-rerank': '/rerank',
  },
  sign: 'bearer',
  models: [
    { id: 'makes', price },
    { id: 'times', billsWhenLeft: false, price: { input: '0', output: '0', perSecond: '0.001' } },
    { id: 'spells', billsWhenLeft: false, price: { input: '0', output: '0', perCharacter: '0.00001' } },
    { id: 'sorts', billsWhenLeft: false, price: { input: '0', output: '0', perSearch: '0.002' } },
    { id: 'draws', billsWhenLeft: false, price: { input: '0', output: '0', perImage: '0.03' } },
    {
      id: 'hears',
      contextTokens: 16_000,
      outputTokensMax: 1_000,
      billsWhenLeft: false, // the upstream is left at once, so that the cost of an abandoned call is estimated
      price: { input: '1', output: '2', inputAudio: '6' },
      traits: { reads: ['text', 'audio'], thinking: 'none', mediaTokens: { audioSecond: 10 } },
    },
  ],
}

let harness: Harness
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-brook-'))
  writeFileSync(join(folder, 'brook.json'), JSON.stringify(provider))
  harness = await startHarness({
    env: { WEIR_PROVIDERS: folder, BROOK_KEY: 'sk-brook', WEIR_DRAIN_SECONDS: '0' },
    upstreamEnv: url => ({ BROOK_URL: `${url}/v1` }),
  })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

const image = { b64_json: 'iVBORw0KGgo=' }
const partial = { type: 'image_generation.partial_image', b64_json: image.b64_json }
const completed = { type: 'image_generation.completed', b64_json: image.b64_json }
const speech = { input: 'x'.repeat(100), voice: 'alloy' }
const sound = sendsBytes('audio/mpeg', [new Uint8Array(4_000)])
const longSound = sendsBytes('audio/mpeg', [new Uint8Array(400_000), new Uint8Array(200_000)])

/** The request, the upstream's answer, and the cost of the output. */
type Row = readonly [what: string, path: string, asked: object, upstream: Script, worth: number]
const rows: readonly Row[] = [
  ['sound', '/v1/audio/speech', speech, sound, 150 * SOUND],
  ['sound that is longer than its text', '/v1/audio/speech', speech, longSound, 600 * SOUND],
  ['uncompressed sound', '/v1/audio/speech', { ...speech, response_format: 'wav' }, longSound, 250 * SOUND],
  ['slow sound', '/v1/audio/speech', { ...speech, speed: 0.25 }, sound, 600 * SOUND],
  ['fast sound', '/v1/audio/speech', { ...speech, speed: 3 }, sound, 50 * SOUND],
  [
    'sound as events',
    '/v1/audio/speech',
    { ...speech, stream_format: 'sse' },
    sendsEvents([{ type: 'speech.audio.delta', audio: 'AAAA' }, { type: 'speech.audio.done' }]),
    150 * SOUND,
  ],
  [
    'pictures',
    '/v1/images/generations',
    { prompt: 'a brook', n: 2, quality: 'low' },
    says({ data: [image, image] }),
    2 * 408 * PICTURE,
  ],
  ['a picture of the best', '/v1/images/generations', { prompt: 'a brook' }, says({ data: [image] }), 6_240 * PICTURE],
  [
    'a picture as events',
    '/v1/images/generations',
    { prompt: 'a brook', quality: 'medium', stream: true },
    sendsEvents([partial, completed]),
    1_584 * PICTURE,
  ],
  [
    'one of three pictures as events',
    '/v1/images/generations',
    { prompt: 'a brook', quality: 'low', stream: true, n: 3 },
    sendsEvents([partial, completed]),
    408 * PICTURE,
  ],
  [
    'one picture of a sequence of Ark',
    '/api/v3/images/generations',
    { prompt: 'a brook', stream: true, sequential_image_generation: 'auto' },
    sendsEvents([
      { type: 'image_generation.partial_succeeded', image_index: 0, url: 'https://x/1' },
      { type: 'image_generation.completed' },
    ]),
    4_096 * PICTURE,
  ],
  ['a picture of Ark', '/api/v3/images/generations', { prompt: 'a brook' }, says({ data: [image] }), 4_096 * PICTURE],
]

test.each(rows)('the output tokens of %s are estimated', async (_what, path, fields, upstream, worth) => {
  harness.upstream.plan(upstream)
  const authorization = `Bearer ${await harness.key()}`
  const body = JSON.stringify({ model: 'brook/makes', ...fields })
  const headers = { authorization, 'content-type': 'application/json' }
  const answer = await fetch(harness.url + path, { method: 'POST', headers, body })
  expect([answer.status, (await answer.arrayBuffer()).byteLength > 0]).toEqual([200, true])
  await harness.idle()
  const row = harness.lastRecord()!
  expect(row).toMatchObject({ outcome: 'completed', usage_source: 'estimated' })
  expect(Number(row.cost)).toBe(Math.ceil(body.length / 4) * 1_000 + worth)
})

const SECONDS = 30
const HEARD_TOKENS = SECONDS * 10
const prompt = 'A brook, a river and the sea. '.repeat(10)
/** Forty bytes, ten tokens. */
const words = 'river '.repeat(7).slice(0, 40)
const eventsHead = head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' })

const transcript = (stream: boolean, model = 'hears'): FormData => {
  const form = new FormData()
  form.set('model', `brook/${model}`)
  form.set('prompt', prompt)
  if (stream) form.set('stream', 'true')
  form.set('file', new File([wav(SECONDS)], 'a.wav', { type: 'audio/wav' }))
  return form
}

const spoken = JSON.stringify({
  model: 'brook/hears',
  stream: true,
  messages: [
    {
      role: 'user',
      content: [{ type: 'input_audio', input_audio: { format: 'wav', data: wav(SECONDS).toString('base64') } }],
    },
  ],
})

/** A call that its caller leaves after the first content, with its record. */
async function recordOfLeft(path: string, request: Request, event: object): Promise<Record<string, unknown>> {
  const never = Promise.withResolvers<void>()
  harness.upstream.plan(script(eventsHead, chunk(`data: ${JSON.stringify(event)}\n\n`), gate(never.promise)))
  const headers = {
    'authorization': `Bearer ${await harness.key()}`,
    'content-type': request.headers.get('content-type')!,
  }
  const caller = openRaw(harness.url, post(path, headers, Buffer.from(await request.arrayBuffer())))
  await caller.until(({ text }) => text.includes('river'), 'the caller has content')
  caller.leave()
  await harness.idle()
  never.resolve()
  return harness.lastRecord()!
}

test('the audio of a transcription that its caller leaves is charged as audio, and the prompt as text', async () => {
  const request = new Request('http://x', { method: 'POST', body: transcript(true) })
  const delta = { type: 'transcript.text.delta', delta: words }
  const row = await recordOfLeft('/v1/audio/transcriptions', request, delta)
  expect(row).toMatchObject({ outcome: 'client_left', rule: 'left_reading', usage_source: 'estimated' })
  expect(Number(row.cost)).toBe(HEARD_TOKENS * HEARD + (prompt.length / 4) * TEXT + 10 * WRITTEN)
})

const asJson = (model: string, fields: object): Request =>
  new Request('http://x', {
    method: 'POST',
    body: JSON.stringify({ model: `brook/${model}`, ...fields }),
    headers: { 'content-type': 'application/json' },
  })
const units: readonly (readonly [what: string, path: string, request: Request, worth: number])[] = [
  ['characters', '/v1/audio/speech', asJson('spells', speech), 100 * 10_000],
  ['searches', '/v1/rerank', asJson('sorts', { query: 'a brook', documents: ['a', 'b'] }), 2_000_000],
  [
    'seconds',
    '/v1/audio/transcriptions',
    new Request('http://x', { method: 'POST', body: transcript(false, 'times') }),
    SECONDS * 1_000_000,
  ],
  ['no images, which are not made', '/v1/images/generations', asJson('draws', { prompt: 'a brook' }), 0],
]

test.each(units)('a caller that leaves before the answer pays for its %s', async (_what, path, request, worth) => {
  const never = Promise.withResolvers<void>()
  harness.upstream.plan(script(gate(never.promise)))
  const before = harness.upstream.requests.length
  const authorization = `Bearer ${await harness.key()}`
  const headers = { authorization, 'content-type': request.headers.get('content-type')! }
  const caller = openRaw(harness.url, post(path, headers, Buffer.from(await request.arrayBuffer())))
  await until(() => harness.upstream.requests.length > before, 'the upstream has the request')
  caller.leave()
  await harness.idle()
  never.resolve()
  expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', rule: 'left_waiting', cost: worth })
})

test.each([
  ['without a report', {}],
  ['with a report of its length alone', { duration: SECONDS }],
])('the audio of a transcription %s is charged as audio', async (_what, more) => {
  harness.upstream.plan(says({ text: words, ...more }))
  const headers = { authorization: `Bearer ${await harness.key()}` }
  const init = { method: 'POST', headers, body: transcript(false) }
  expect((await fetch(`${harness.url}/v1/audio/transcriptions`, init)).status).toBe(200)
  await harness.idle()
  const row = harness.lastRecord()!
  expect(row).toMatchObject({ outcome: 'completed', usage_source: 'estimated' })
  expect(Number(row.cost)).toBe(HEARD_TOKENS * HEARD + (prompt.length / 4) * TEXT + 10 * WRITTEN)
})

test.each([
  { duration: 0, usage: { type: 'tokens', input_tokens: 10, output_tokens: 5, total_tokens: 15 } },
  { usage: { prompt_audio_seconds: 0, prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
])('a transcription that is paid by the second costs its length if the report says 0: %j', async more => {
  harness.upstream.plan(says({ text: words, ...more }))
  const headers = { authorization: `Bearer ${await harness.key()}` }
  const init = { method: 'POST', headers, body: transcript(false, 'times') }
  expect((await fetch(`${harness.url}/v1/audio/transcriptions`, init)).status).toBe(200)
  await harness.idle()
  expect(Number(harness.lastRecord()!.cost)).toBe(SECONDS * 1_000_000)
})

const chunkOf = (choice: object) => ({ object: 'transcription.chunk', choices: [{ index: 0, ...choice }] })
const lastDelta = { type: 'transcript.text.delta', delta: words }

test.each([
  ['only its last event', sendsEvents([{ type: 'transcript.text.done', text: words }])],
  ['deltas before its last event', sendsEvents([lastDelta, { type: 'transcript.text.done', text: words }])],
  [
    'segments before its last event',
    sendsEvents([
      { type: 'transcription.segment', text: words },
      { type: 'transcription.done', text: words },
    ]),
  ],
  [
    'the chunks of a chat',
    sendsEvents(
      [chunkOf({ delta: { content: words } }), chunkOf({ delta: { content: '' }, finish_reason: 'stop' })],
      'data: [DONE]\n\n',
    ),
  ],
])('a streamed transcription without a report is charged for its transcript if it has %s', async (_what, upstream) => {
  harness.upstream.plan(upstream)
  const headers = { authorization: `Bearer ${await harness.key()}` }
  const init = { method: 'POST', headers, body: transcript(true) }
  const answer = await fetch(`${harness.url}/v1/audio/transcriptions`, init)
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining(words)])
  await harness.idle()
  const row = harness.lastRecord()!
  expect(row).toMatchObject({ outcome: 'completed', usage_source: 'estimated' })
  expect(Number(row.cost)).toBe(HEARD_TOKENS * HEARD + (prompt.length / 4) * TEXT + 10 * WRITTEN)
})

test('a transcription that is cut off in its JSON is no answer, and free', async () => {
  harness.upstream.plan(saysText(`{"text":"${words}`, 'application/json'))
  const headers = { authorization: `Bearer ${await harness.key()}` }
  const init = { method: 'POST', headers, body: transcript(false, 'times') }
  expect((await fetch(`${harness.url}/v1/audio/transcriptions`, init)).status).toBe(502)
  await harness.idle()
  expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', cost: 0 })
})

const reports: readonly (readonly [string, object, number])[] = [
  ['no details', { prompt_tokens: 320 }, HEARD_TOKENS * HEARD + 20 * TEXT],
  ['fewer tokens than the audio has', { prompt_tokens: 200 }, 200 * HEARD],
  ['audio', { prompt_tokens: 320, prompt_tokens_details: { audio_tokens: 280 } }, 280 * HEARD + 40 * TEXT],
  ['images', { prompt_tokens: 320, prompt_tokens_details: { image_tokens: 20 } }, 320 * TEXT],
  [
    'cached tokens, which may be the audio',
    { prompt_tokens: 320, prompt_tokens_details: { cached_tokens: 300 } },
    320 * TEXT,
  ],
]

test.each(reports)(
  'the input of a chat with audio is charged by kind, with a report of %s',
  async (_what, report, worth) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: words }, finish_reason: 'stop' }]
    harness.upstream.plan(says({ id: 'c', choices, usage: { ...report, completion_tokens: 10 } }))
    const headers = { 'authorization': `Bearer ${await harness.key()}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ ...(JSON.parse(spoken) as object), stream: false })
    expect((await fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', headers, body })).status).toBe(200)
    await harness.idle()
    const row = harness.lastRecord()!
    expect(row).toMatchObject({ outcome: 'completed', usage_source: 'reported' })
    expect(Number(row.cost)).toBe(worth + 10 * WRITTEN)
  },
)

test('the audio in a chat that its caller leaves is charged as audio', async () => {
  const request = new Request('http://x', {
    method: 'POST',
    body: spoken,
    headers: { 'content-type': 'application/json' },
  })
  const delta = { id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: words }, finish_reason: null }] }
  const row = await recordOfLeft('/v1/chat/completions', request, delta)
  expect(row).toMatchObject({ outcome: 'client_left', rule: 'left_reading', usage_source: 'estimated' })
  const text = spoken.length - wav(SECONDS).toString('base64').length
  expect(Number(row.cost)).toBe(HEARD_TOKENS * HEARD + Math.ceil(text / 4) * TEXT + 10 * WRITTEN)
})
