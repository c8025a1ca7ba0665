// The official SDKs with passthrough calls: what they read, and what it costs.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { startHasty } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { wav } from '../support/sample-media.ts'
import { nanosOf, says, saysText, sendsBytes, sendsEvents } from './upstream.ts'

type Sdk = typeof OpenAI

const sdks: readonly (readonly [string, Sdk])[] = [
  ['7.x', OpenAI],
  ['6.x', OpenAI6 as unknown as Sdk],
]

let harness: Harness

beforeAll(async () => {
  harness = await startHasty()
})
afterAll(() => harness.stop())

/** A client with ten dollars, and how much of it is spent. */
async function funded(Sdk: Sdk): Promise<{ client: OpenAI; spent(): Promise<bigint> }> {
  const key = await harness.key({ credit: '10' })
  return {
    client: new Sdk({ apiKey: key, baseURL: `${harness.url}/v1`, maxRetries: 0 }),
    async spent() {
      await harness.idle()
      const { balance, held } = await harness.balance(key)
      expect(nanosOf(held)).toBe(0n)
      return 10_000_000_000n - nanosOf(balance)
    },
  }
}

const lastSent = (): { path: string; text: string; header(name: string): string | undefined } => {
  const { path, body, headers } = harness.upstream.requests.at(-1)!
  return { path, text: Buffer.from(body).toString('latin1'), header: name => headers.get(name) }
}

/** The SDKs' promises have a type of their own, which the matchers do not await. */
async function thrownBy(run: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await run()
  } catch (fault) {
    return fault
  }
  throw new Error('nothing was thrown')
}

const vector = new Float32Array([0.5, -1.25, 3])
const base64 = Buffer.from(vector.buffer).toString('base64')
const embedded = (embedding: unknown, usage?: object) => ({
  object: 'list',
  model: 'text-embedding-3-small',
  data: [{ object: 'embedding', index: 0, embedding }],
  ...(usage && { usage }),
})

describe.each(sdks)('openai %s', (_version, Sdk) => {
  test('P35: embeds as base64, which it requests by default, and as floats', async () => {
    const { client, spent } = await funded(Sdk)
    const model = 'openai/text-embedding-3-small'
    harness.upstream.plan(says(embedded(base64, { prompt_tokens: 1_000, total_tokens: 1_000 })))
    const first = await client.embeddings.create({ model, input: 'Hello' })
    expect(first.data[0]!.embedding).toEqual([...vector])
    expect(lastSent()).toMatchObject({ path: '/v1/embeddings' })
    const sent = { model: 'text-embedding-3-small', input: 'Hello', encoding_format: 'base64' }
    expect(JSON.parse(lastSent().text)).toEqual(sent)
    expect(await spent()).toBe(20_000n)
    harness.upstream.plan(says(embedded([...vector], { prompt_tokens: 500, total_tokens: 500 })))
    const second = await client.embeddings.create({ model, input: ['a', 'b'], encoding_format: 'float' })
    expect(second.data[0]!.embedding).toEqual([...vector])
    expect(await spent()).toBe(30_000n)
    const record = { dialect: 'openai-embeddings', usage_source: 'reported', input_tokens: 500 }
    expect(harness.lastRecord()).toMatchObject(record)
  })

  test('P35: is charged by a count for embeddings without usage', async () => {
    const { client, spent } = await funded(Sdk)
    harness.upstream.plan(says(embedded(base64)))
    await client.embeddings.create({ model: 'openai/text-embedding-3-small', input: 'Hello' })
    const sentBytes = harness.lastRecord()!.input_tokens as number
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'estimated', output_tokens: 0 })
    expect(sentBytes).toBeGreaterThan(10)
    expect(await spent()).toBe(BigInt(sentBytes) * 20n)
  })

  test('generates images', async () => {
    const { client, spent } = await funded(Sdk)
    const details = { text_tokens: 100, image_tokens: 0 }
    const usage = { input_tokens: 100, output_tokens: 2_000, total_tokens: 2_100, input_tokens_details: details }
    harness.upstream.plan(says({ created: 1, data: [{ b64_json: 'AAAA' }, { b64_json: 'BBBB' }], usage }))
    const images = await client.images.generate({ model: 'openai/gpt-image-1.5', prompt: 'A river', n: 2 })
    expect(images.data!.map(one => one.b64_json)).toEqual(['AAAA', 'BBBB'])
    // Text input at 5 and image output at 32 dollars per million tokens.
    expect(await spent()).toBe(100n * 5_000n + 2_000n * 32_000n)
  })

  test('generates images as events', async () => {
    const { client, spent } = await funded(Sdk)
    const usage = { input_tokens: 100, output_tokens: 1_000, total_tokens: 1_100 }
    const large = 'A'.repeat(3_000_000)
    harness.upstream.plan(
      sendsEvents([
        { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'AA' },
        { type: 'image_generation.completed', b64_json: large, usage },
      ]),
    )
    const events: unknown[] = []
    const stream = await client.images.generate({ model: 'openai/gpt-image-1.5', prompt: 'A river', stream: true })
    for await (const event of stream) events.push([event.type, event.b64_json.length])
    expect(events).toEqual([
      ['image_generation.partial_image', 2],
      ['image_generation.completed', 3_000_000],
    ])
    expect(await spent()).toBe(100n * 5_000n + 1_000n * 32_000n)
  })

  test('edits an image', async () => {
    const { client, spent } = await funded(Sdk)
    const details = { text_tokens: 20, image_tokens: 300 }
    const usage = { input_tokens: 320, output_tokens: 500, total_tokens: 820, input_tokens_details: details }
    harness.upstream.plan(says({ created: 1, data: [{ b64_json: 'AAAA' }], usage }))
    const image = new File([new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10])], 'a.png', { type: 'image/png' })
    await client.images.edit({ model: 'openai/gpt-image-1', image, prompt: 'More water' })
    const { path, text, header } = lastSent()
    expect(path).toBe('/v1/images/edits')
    expect(header('content-type')).toStartWith('multipart/form-data; boundary=')
    expect(text).toContain('\r\n\r\ngpt-image-1\r\n')
    expect(text).toContain('\x89PNG\r\n\x1a\n')
    expect(await spent()).toBe(20n * 5_000n + 300n * 10_000n + 500n * 40_000n)
  })

  test('generates speech', async () => {
    const { client, spent } = await funded(Sdk)
    const sound = [new Uint8Array(5_000).fill(1), new Uint8Array(5_000).fill(2), new Uint8Array([255, 0, 1])]
    harness.upstream.plan(sendsBytes('audio/mpeg', sound))
    const request = { model: 'openai/gpt-4o-mini-tts', input: 'Hello, river', voice: 'alloy' }
    const response = await client.audio.speech.create(request)
    expect(response.headers.get('content-type')).toBe('audio/mpeg')
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat(sound))).toBe(true)
    const { input_tokens: input } = harness.lastRecord()! as { input_tokens: number }
    const record = { usage_source: 'estimated', output_tokens: 18, outcome: 'completed' }
    expect(harness.lastRecord()).toMatchObject(record)
    expect(await spent()).toBe(BigInt(input) * 600n + 18n * 12_000n)
  })

  test('generates speech as events', async () => {
    const { client, spent } = await funded(Sdk)
    const usage = { input_tokens: 10, output_tokens: 200, total_tokens: 210 }
    const done = { type: 'speech.audio.done', usage }
    harness.upstream.plan(sendsEvents([{ type: 'speech.audio.delta', audio: 'AAAA' }, done]))
    const response = await client.audio.speech.create({
      model: 'openai/gpt-4o-mini-tts',
      input: 'Hello',
      voice: 'alloy',
      stream_format: 'sse',
    })
    expect(await response.text()).not.toContain('X-Pipeline')
    expect(await spent()).toBe(10n * 600n + 200n * 12_000n)
  })

  /** Two seconds of silence. */
  const wave = Buffer.alloc(44 + 32_000)
  wave.write('RIFF....WAVEfmt \x10\0\0\0\x01\0\x01\0', 'latin1')
  wave.writeUInt32LE(8_000, 24)
  wave.writeUInt16LE(16, 34)
  wave.write('data', 36)
  const file = () => new File([wave], 'a.wav', { type: 'audio/wav' })
  const unknown = () => new File([new Uint8Array(32_000).fill(7)], 'a.wav', { type: 'audio/wav' })

  test('transcribes, priced by the second', async () => {
    const { client, spent } = await funded(Sdk)
    harness.upstream.plan(says({ text: 'Hello', usage: { type: 'duration', seconds: 12 } }))
    const { text } = await client.audio.transcriptions.create({ model: 'openai/whisper-1', file: file() })
    expect(text).toBe('Hello')
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'reported' })
    expect(await spent()).toBe(12n * 100_000n)
    harness.upstream.plan(saysText('1\n00:00:00,000 --> 00:00:01,000\nHello\n', 'text/plain'))
    const request = { model: 'openai/whisper-1', file: file(), response_format: 'srt' } as const
    const srt = await client.audio.transcriptions.create(request)
    expect(srt as unknown as string).toContain('-->')
    // As long as the audio is, and not only up to its last word.
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'estimated' })
    expect(await spent()).toBe(14n * 100_000n)
    // Two seconds, as its frames say, or as long as it takes to speak the returned words; audio of unknown length is as
    // long as its bytes can be.
    const transcripts = [
      ['Hello', file, 2n],
      ['river '.repeat(50_000), file, 4_000n],
      ['Hello', unknown, 43n],
    ] as const
    for (const [text, sound, seconds] of transcripts) {
      const before = await spent()
      harness.upstream.plan(saysText(text, 'text/plain'))
      await client.audio.transcriptions.create({ ...request, file: sound(), response_format: 'text' })
      expect(harness.lastRecord()).toMatchObject({ usage_source: 'estimated' })
      expect((await spent()) - before).toBe(seconds * 100_000n)
    }
  })

  test.each([1, 10])(
    'repeats a form of %d seconds with its idempotency key, although its boundary is new',
    async seconds => {
      const { client } = await funded(Sdk)
      const transcribe = async (name: string) => {
        const file = new File([wav(seconds)], name, { type: 'audio/wav' })
        const headers = { 'Idempotency-Key': 'once' }
        return (await client.audio.transcriptions.create({ file, model: 'openai/whisper-1' }, { headers })).text
      }
      harness.upstream.plan(says({ text: 'river', duration: seconds }))
      expect(await transcribe('a.wav')).toBe('river')
      const before = harness.upstream.requests.length
      expect(await transcribe('a.wav')).toBe('river')
      expect(await thrownBy(() => transcribe('b.wav'))).toMatchObject({ status: 422 })
      expect(harness.upstream.requests.length).toBe(before)
    },
  )

  test('transcribes, priced by the token, and as events', async () => {
    const { client, spent } = await funded(Sdk)
    const usage = {
      type: 'tokens',
      input_tokens: 120,
      output_tokens: 30,
      total_tokens: 150,
      input_token_details: { text_tokens: 20, audio_tokens: 100 },
    }
    const cost = 20n * 2_500n + 100n * 6_000n + 30n * 10_000n
    const model = 'openai/gpt-4o-transcribe'
    harness.upstream.plan(says({ text: 'Hello', usage }))
    expect((await client.audio.transcriptions.create({ model, file: file() })).text).toBe('Hello')
    expect(await spent()).toBe(cost)
    harness.upstream.plan(
      sendsEvents([
        { type: 'transcript.text.delta', delta: 'Hel' },
        { type: 'transcript.text.delta', delta: 'lo' },
        { type: 'transcript.text.done', text: 'Hello', usage },
      ]),
    )
    let transcript = ''
    for await (const event of await client.audio.transcriptions.create({ model, file: file(), stream: true })) {
      if (event.type === 'transcript.text.delta') transcript += event.delta
    }
    expect(transcript).toBe('Hello')
    expect(await spent()).toBe(2n * cost)
  })

  test('gets the transcript of a Mistral model, whole and as events', async () => {
    const { client, spent } = await funded(Sdk)
    const usage = {
      prompt_audio_seconds: 12,
      prompt_tokens: 3,
      total_tokens: 419,
      completion_tokens: 41,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 375 },
    }
    const cost = 3n * 2_500n + 375n * 6_000n + 41n * 10_000n
    const model = 'openai/gpt-4o-transcribe'
    harness.upstream.plan(says({ model: 'voxtral-mini-latest', text: 'Hello', language: null, segments: [], usage }))
    expect((await client.audio.transcriptions.create({ model, file: file() })).text).toBe('Hello')
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'reported' })
    expect(await spent()).toBe(cost)
    const events = [
      { type: 'transcription.language', audio_language: 'en' },
      { type: 'transcription.text.delta', text: 'Hel' },
      { type: 'transcription.text.delta', text: 'lo' },
      { type: 'transcription.segment', text: 'Hello', start: 0, end: 1.5 },
      { type: 'transcription.done', model: 'voxtral-mini-latest', text: 'Hello', language: 'en', usage },
    ]
    for (const last of ['', 'data: [DONE]\n\n']) {
      harness.upstream.plan(sendsEvents(events, last))
      const before = await spent()
      const raw = await client.audio.transcriptions.create({ model, file: file(), stream: true }).asResponse()
      const text = await raw.text()
      expect([raw.status, ...(text.match(/transcription\.[a-z.]+/g) ?? [])]).toEqual([
        200,
        ...events.map(one => one.type),
      ])
      expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', usage_source: 'reported' })
      expect((await spent()) - before).toBe(cost)
    }
  })

  test('gets a whole answer from a model that cannot stream its transcript', async () => {
    const { client, spent } = await funded(Sdk)
    harness.upstream.plan(says({ text: 'Hello', usage: { type: 'duration', seconds: 1 } }))
    const raw = await client.audio.transcriptions
      .create({ model: 'openai/whisper-1', file: file(), stream: true })
      .asResponse()
    expect(await raw.json()).toMatchObject({ text: 'Hello' })
    expect(await spent()).toBe(100_000n)
  })

  test('moderates without a charge', async () => {
    const { client, spent } = await funded(Sdk)
    harness.upstream.plan(says({ id: 'm', model: 'x', results: [{ flagged: false }] }))
    const { results } = await client.moderations.create({ model: 'openai/omni-moderation-latest', input: 'Hello' })
    expect(results[0]!.flagged).toBe(false)
    expect(await spent()).toBe(0n)
  })

  test('completes text, plain and streamed', async () => {
    const { client, spent } = await funded(Sdk)
    const model = 'openai/gpt-3.5-turbo-instruct'
    const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 }
    const cost = 10n * 1_500n + 20n * 2_000n
    const request = { model, prompt: 'Hello,', max_tokens: 50 }
    const piece = (text: string, finish_reason: string | null) => ({
      id: 'c',
      choices: [{ index: 0, text, finish_reason }],
    })
    harness.upstream.plan(says({ ...piece(' river', 'stop'), usage }))
    const { data, response } = await client.completions.create(request).withResponse()
    expect(data.choices[0]!.text).toBe(' river')
    expect(response.headers.get('x-pipeline-adapter')).toStartWith('done')
    expect(await spent()).toBe(cost)
    const events = [piece(' ri', null), piece('ver', 'stop'), { id: 'c', choices: [], usage }]
    harness.upstream.plan(sendsEvents(events, 'data: [DONE]\n\n'))
    let text = ''
    for await (const part of await client.completions.create({ ...request, stream: true })) {
      text += part.choices[0]!.text
    }
    expect(text).toBe(' river')
    expect(JSON.parse(lastSent().text)).toMatchObject({ stream_options: { include_usage: true } })
    expect(await spent()).toBe(2n * cost)
  })

  test("raises its own exception for an upstream's refusal, which is free", async () => {
    const { client, spent } = await funded(Sdk)
    const error = { message: 'Too long.', type: 'invalid_request_error', param: 'input', code: null }
    harness.upstream.plan(says({ error }, 400))
    const embeds = (model: string) => () => client.embeddings.create({ model, input: 'Hello' })
    const refused = await thrownBy(embeds('openai/text-embedding-3-small'))
    expect(refused).toMatchObject({ status: 400, param: 'input', message: '400 Too long.' })
    harness.upstream.plan(says({ error }, 400))
    const speaks = { model: 'openai/gpt-4o-mini-tts', input: 'x', voice: 'alloy' }
    expect(await thrownBy(() => client.audio.speech.create(speaks))).toBeInstanceOf(Sdk.BadRequestError)
    expect(await thrownBy(embeds('openai/gpt-0'))).toBeInstanceOf(Sdk.NotFoundError)
    // The model generates images and does not embed; nor does an embedding model chat.
    expect(await thrownBy(embeds('openai/gpt-image-1'))).toBeInstanceOf(Sdk.BadRequestError)
    const chats = { model: 'openai/text-embedding-3-small', messages: [{ role: 'user' as const, content: 'Hello' }] }
    expect(await thrownBy(() => client.chat.completions.create(chats))).toBeInstanceOf(Sdk.BadRequestError)
    expect(await spent()).toBe(0n)
  })
})
