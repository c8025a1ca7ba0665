// Passthrough calls as bytes: what passes unchanged, what is refused, and what is held back.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Step } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, head, reset, script } from '../../tools/fake-upstream/script.ts'
import { openRaw, startHasty } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { nanosOf, says, saysText, sendsBytes } from './upstream.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHasty({ world: { bodyBounds: { bytesMax: 100_000, msMax: 60_000 } } })
})
afterAll(() => harness.stop())

interface Sent {
  readonly key?: string
  readonly type?: string
  readonly headers?: Record<string, string>
}

async function call(path: string, body: string | Uint8Array, { key, type, headers }: Sent = {}): Promise<Response> {
  const authorization = `Bearer ${key ?? (await harness.key())}`
  return await fetch(harness.url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': type ?? 'application/json', ...headers },
    body: Buffer.from(body),
  })
}

const pipelineNames = (response: Response): string[] =>
  [...response.headers.keys()].filter(name => name.startsWith('x-pipeline-'))

const embedding = '{"model":"openai/text-embedding-3-small","input":"Hello"}'
const vectors = { object: 'list', data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 1, total_tokens: 1 } }

describe('the headers of the stages', () => {
  test('are neither on a good answer nor on an error', async () => {
    harness.upstream.plan(says(vectors))
    expect(pipelineNames(await call('/v1/embeddings', embedding))).toEqual([])
    expect(pipelineNames(await call('/v1/embeddings', '{'))).toEqual([])
    expect(pipelineNames(await call('/v1/embeddings', '{"model":"openai/nope","input":"x"}'))).toEqual([])
    harness.upstream.plan(says({ error: { message: 'no' } }, 500))
    const failed = await call('/v1/embeddings', embedding)
    expect([failed.status, pipelineNames(failed)]).toEqual([502, []])
    const wrongMethod = await fetch(`${harness.url}/v1/embeddings`, {
      headers: { authorization: `Bearer ${await harness.key()}` },
    })
    expect([wrongMethod.status, pipelineNames(wrongMethod)]).toEqual([405, []])
  })

  test.each(['/v1/embeddings', '/v1/audio/speech', '/v1/images/edits', '/api/v3/tokenization'])(
    'are on a failed authentication only: %s',
    async path => {
      const refused = await call(path, '{}', { key: 'wk-nobody' })
      expect([refused.status, pipelineNames(refused)]).toEqual([401, ['x-pipeline-auth']])
      expect(refused.headers.get('x-pipeline-auth')).toMatch(/^fail \(\d+ms\)$/)
    },
  )

  test('are on completions, which generate text like chats', async () => {
    const choices = [{ index: 0, text: 'x', finish_reason: 'stop' }]
    harness.upstream.plan(says({ choices, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }))
    const body = '{"model":"openai/gpt-3.5-turbo-instruct","prompt":"x","max_tokens":9}'
    const answer = await call('/v1/completions', body)
    expect(pipelineNames(answer)).toHaveLength(5)
  })
})

describe('bytes', () => {
  test('P35: of vectors pass unchanged, in either encoding', async () => {
    for (const data of ['[0.10, 1e-3]', '"AACAPw=="']) {
      const text = `{ "data": [{"embedding": ${data}, "index":0}], "usage": {"prompt_tokens":3,"total_tokens":3} }`
      harness.upstream.plan(saysText(text, 'application/json'))
      expect(await (await call('/v1/embeddings', embedding)).text()).toBe(text)
    }
  })

  test('of a request change in nothing but the model', async () => {
    harness.upstream.plan(says(vectors))
    const body = (model: string) => `{ "x": 1.0e0, "model" : "${model}", "input": [1, 2] }`
    await call('/v1/embeddings', body('openai/text-embedding-3-small'))
    const sent = harness.upstream.requests.at(-1)!
    expect(Buffer.from(sent.body).toString()).toBe(body('text-embedding-3-small'))
  })

  test('of a form change in nothing but the model, and its content type passes unchanged', async () => {
    harness.upstream.plan(says({ text: 'x', usage: { type: 'duration', seconds: 1 } }))
    const type = 'Multipart/Form-Data;  boundary="a b"; charset=x'
    const part = (name: string, content: string) =>
      `--a b\r\ncontent-disposition: form-data; ${name}\r\n\r\n${content}\r\n`
    const form = (model: string) =>
      `${part('name="file"; filename="\\"x\\".wav"', '\x00\xff\r\n--a c')}${part('name="model"', model)}--a b--\r\n`
    const answer = await call('/v1/audio/transcriptions', Buffer.from(form('openai/whisper-1'), 'latin1'), { type })
    expect(answer.status).toBe(200)
    const sent = harness.upstream.requests.at(-1)!
    expect(Buffer.from(sent.body).toString('latin1')).toBe(form('whisper-1'))
    expect(sent.headers.get('content-type')).toBe(type)
  })

  test('that are encoded are decoded first', async () => {
    harness.upstream.plan(says(vectors))
    const answer = await call('/v1/embeddings', Bun.gzipSync(embedding), { headers: { 'content-encoding': 'gzip' } })
    expect(answer.status).toBe(200)
  })
})

describe('audio', () => {
  const speech = JSON.stringify({ model: 'openai/gpt-4o-mini-tts', input: 'Hello', voice: 'alloy' })
  const open = (key: string) => {
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    return openRaw(harness.url, post('/v1/audio/speech', headers, speech))
  }
  const sound = 'sound'.repeat(1_000)
  const soundHead = head(200, { 'content-type': 'audio/mpeg', 'transfer-encoding': 'chunked' })

  test('is held back in its last chunk until the call is settled', async () => {
    const key = await harness.key()
    const more = Promise.withResolvers<void>()
    harness.upstream.plan(script(soundHead, chunk(sound), gate(more.promise), end))
    const caller = open(key)
    await caller.until(({ body }) => body.length >= sound.length - 1_024, 'all but the last bytes are there')
    expect(caller.text).toBe(sound.slice(0, -1_024))
    expect(harness.openHolds()).toBe(1)
    more.resolve()
    expect((await caller.whole()).text).toBe(sound)
    expect(harness.openHolds()).toBe(0)
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', usage_source: 'estimated' })
  })

  test('that breaks off does not end properly, and is free', async () => {
    const key = await harness.key({ credit: '1' })
    const more = Promise.withResolvers<void>()
    harness.upstream.plan(script(soundHead, chunk(sound), gate(more.promise), reset))
    const caller = open(key)
    await caller.until(({ body }) => body.length >= sound.length - 1_024, 'all but the last bytes are there')
    more.resolve()
    await caller.closed
    expect([caller.isWhole, caller.text]).toEqual([false, sound.slice(0, -1_024)])
    await harness.idle()
    expect(await harness.balance(key)).toMatchObject({ balance: '1.00', held: '0.00' })
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', cost: 0 })
  })

  test.each([
    ['a page', saysText('<html>', 'text/html')],
    ['JSON', says({ hello: 1 })],
    ['an error', says({ error: { message: 'Broken.' } })],
    ['an error of RFC 9457', saysText('{"detail":"Broken."}', 'application/problem+json')],
    ['an error in XML', saysText('<Error>Broken.</Error>', 'application/xml')],
    ['a page in XHTML', saysText('<html/>', 'application/xhtml+xml')],
    ['nothing', sendsBytes('audio/mpeg', [])],
  ])('is refused if the upstream sends %s instead', async (_what, upstream) => {
    const key = await harness.key({ credit: '1' })
    harness.upstream.plan(upstream)
    expect((await call('/v1/audio/speech', speech, { key })).status).toBe(502)
    expect(await harness.balance(key)).toMatchObject({ balance: '1.00', held: '0.00' })
  })

  test('is replayed for its idempotency key', async () => {
    const key = await harness.key()
    harness.upstream.plan(sendsBytes('audio/mpeg', [new Uint8Array([255, 1]), new Uint8Array([2, 254])]))
    const headers = { 'idempotency-key': 'sound' }
    const bytesOf = async (answer: Response) => [
      answer.headers.get('content-type'),
      ...new Uint8Array(await answer.arrayBuffer()),
    ]
    const first = await bytesOf(await call('/v1/audio/speech', speech, { key, headers }))
    const before = harness.upstream.requests.length
    const replayed = await call('/v1/audio/speech', speech, { key, headers })
    expect(replayed.headers.get('x-weir-replayed')).toStartWith('req_')
    expect(await bytesOf(replayed)).toEqual(first)
    expect(first).toEqual(['audio/mpeg', 255, 1, 2, 254])
    expect(harness.upstream.requests.length).toBe(before)
  })
})

describe('the balance', () => {
  test('must cover the worst case before anything goes upstream', async () => {
    const key = await harness.key({ credit: '0.10' })
    const before = harness.upstream.requests.length
    const request = { model: 'openai/gpt-image-1', prompt: 'A river', n: 3 }
    const refused = await call('/v1/images/generations', JSON.stringify(request), { key })
    expect(refused.status).toBe(402)
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe('insufficient_balance')
    expect(harness.upstream.requests.length).toBe(before)
  })

  test('pays for images without a usage report by an estimate at their price', async () => {
    const key = await harness.key({ credit: '10' })
    harness.upstream.plan(says({ created: 1, data: [{ url: 'https://x/1' }, { url: 'https://x/2' }] }))
    const request = { model: 'openai/gpt-image-1', prompt: 'A river', n: 2, quality: 'low' }
    const body = JSON.stringify(request)
    expect((await call('/v1/images/generations', body, { key })).status).toBe(200)
    const { balance } = await harness.balance(key)
    const input = BigInt(Math.ceil(body.length / 4))
    expect(10_000_000_000n - nanosOf(balance)).toBe(input * 5_000n + 2n * 408n * 40_000n)
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'estimated', output_tokens: 816 })
  })
})

describe('bad input', () => {
  const type = 'multipart/form-data; boundary=b'
  const field = (name: string, content: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`
  const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n'
  const modelField = field('model', 'openai/whisper-1')
  const transcriptions = '/v1/audio/transcriptions'
  const second = field('model', 'openai/gpt-4o-transcribe')
  const bounded = field('model', 'ollama/--b--')
  const json = 'application/json'
  const jsonBody = (fields: object) => JSON.stringify({ model: 'openai/gpt-4o', ...fields })

  const rows: readonly (readonly [string, string, string, string, number, string])[] = [
    ['JSON where a form must be', transcriptions, json, '{}', 415, 'content_type_unsupported'],
    ['a form where JSON must be', '/v1/embeddings', type, `${modelField}--b--`, 415, 'content_type_unsupported'],
    ['no boundary', transcriptions, 'multipart/form-data; charset=x', `${modelField}--b--`, 400, 'form_invalid'],
    [
      'two boundaries',
      transcriptions,
      'multipart/form-data; boundary=b; boundary=c',
      `${modelField}--b--`,
      400,
      'form_invalid',
    ],
    ['another boundary', transcriptions, type, `--c\r\n${modelField}--c--`, 400, 'form_invalid'],
    ['no end', transcriptions, type, `${file}${modelField}`, 400, 'form_invalid'],
    [
      'words after the end',
      transcriptions,
      type,
      `${file}${modelField}--b--\r\n${modelField}--b--`,
      400,
      'form_invalid',
    ],
    ['no model', transcriptions, type, `${file}--b--`, 400, 'field_missing'],
    ['two models', transcriptions, type, `${modelField}${file}${second}--b--`, 400, 'field_duplicate'],
    [
      'a second model in capitals',
      transcriptions,
      type,
      `${modelField}${file}${field('Model', 'x')}--b--`,
      400,
      'field_duplicate',
    ],
    ['a model that is a file', transcriptions, type, `${file.replace('"file"', '"model"')}--b--`, 400, 'field_invalid'],
    ['a model with a boundary in it', transcriptions, type, `${file}${bounded}--b--`, 400, 'field_invalid'],
    [
      'a model without a name',
      transcriptions,
      type,
      `${file}${field('model', 'openai/')}--b--`,
      400,
      'model_malformed',
    ],
    ['no sound', transcriptions, type, `${modelField}--b--`, 400, 'field_missing'],
    [
      'a sound elsewhere',
      transcriptions,
      type,
      `${file}${modelField}${field('url', 'https://a.test')}--b--`,
      400,
      'field_invalid',
    ],
    ['a stream of 7', transcriptions, type, `${file}${modelField}${field('stream', '7')}--b--`, 400, 'field_invalid'],
    [
      'too much',
      transcriptions,
      type,
      `${file.replace('RIFF', 'x'.repeat(200_000))}${modelField}--b--`,
      413,
      'request_too_large',
    ],
    ['many pictures', '/v1/images/edits', type, `${modelField}${field('n', '999')}--b--`, 400, 'field_invalid'],
    ['no input', '/v1/embeddings', json, jsonBody({}), 400, 'field_missing'],
    ['two inputs', '/v1/embeddings', json, '{"model":"a/b","input":"a","input":"b"}', 400, 'field_duplicate'],
    ['an input of 1', '/v1/moderations', json, jsonBody({ input: 1 }), 400, 'field_invalid'],
    ['no documents', '/v1/rerank', json, jsonBody({ query: 'a' }), 400, 'field_missing'],
    ['a text to speak that is none', '/v1/audio/speech', json, jsonBody({ input: [] }), 400, 'field_invalid'],
    ['no text to speak', '/v1/audio/speech', json, jsonBody({ input: '' }), 400, 'field_missing'],
    ['a speed of nothing', '/v1/audio/speech', json, jsonBody({ input: 'x', speed: 0 }), 400, 'field_invalid'],
    ['a second model', '/v1/images/generations', json, jsonBody({ svg: { model: 'x' } }), 400, 'field_invalid'],
    ['an empty list of prompts', '/v1/completions', json, jsonBody({ prompt: [] }), 400, 'field_invalid'],
    ['a provider without rerank', '/v1/rerank', json, jsonBody({ query: 'a', documents: [] }), 400, 'call_unserved'],
  ]

  test.each(rows)('%s', async (_what, path, sentType, body, status, code) => {
    const before = harness.upstream.requests.length
    const answer = await call(path, body, { type: sentType })
    const { error } = (await answer.json()) as { error: { code: string; message: string } }
    expect([answer.status, error.code]).toEqual([status, code])
    expect(harness.upstream.requests.length).toBe(before)
  })

  test('is not reported before the key is checked', async () => {
    expect((await call(transcriptions, '{', { key: 'wk-nobody' })).status).toBe(401)
  })
})

test('a caller that leaves while it waits for an image pays for no image', async () => {
  const key = await harness.key({ credit: '10' })
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'openai/gpt-image-1', prompt: 'A river' })
  const before = harness.upstream.requests.length
  harness.upstream.plan(script())
  const caller = openRaw(harness.url, post('/v1/images/generations', headers, body))
  await until(() => harness.upstream.requests.length > before, 'the upstream has it')
  caller.leave()
  await harness.idle()
  const input = BigInt(Math.ceil(body.length / 4))
  expect(10_000_000_000n - nanosOf((await harness.balance(key)).balance)).toBe(input * 5_000n)
})

describe('a stream of two images', () => {
  const image = (name: string): string =>
    `data: ${JSON.stringify({
      type: 'image_generation.completed',
      b64_json: name,
      usage: { input_tokens: 100, output_tokens: 1_000, total_tokens: 1_100 },
    })}\n\n`
  const eventsHead = head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' })
  const price = 100n * 5_000n + 1_000n * 32_000n

  async function open(...rest: readonly Step[]) {
    const key = await harness.key({ credit: '10' })
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'openai/gpt-image-1.5', prompt: 'A river', n: 2, stream: true })
    harness.upstream.plan(script(eventsHead, chunk(image('first')), ...rest))
    const spent = async (): Promise<bigint> => {
      await harness.idle()
      return 10_000_000_000n - nanosOf((await harness.balance(key)).balance)
    }
    return { caller: openRaw(harness.url, post('/v1/images/generations', headers, body)), spent }
  }

  test('delivers the first one while the second is made', async () => {
    const second = Promise.withResolvers<void>()
    const { caller, spent } = await open(gate(second.promise), chunk(image('second')), end)
    await caller.until(({ text }) => text.includes('first'), 'the first image')
    second.resolve()
    expect((await caller.whole()).text).toBe(image('first') + image('second'))
    expect(await spent()).toBe(2n * price)
  })

  test('that breaks off between them is an error, and no complete answer', async () => {
    const broken = Promise.withResolvers<void>()
    const { caller } = await open(gate(broken.promise), reset)
    await caller.until(({ text }) => text.includes('first'), 'the first image')
    broken.resolve()
    await caller.until(({ text }) => text.includes('upstream_failed'), 'the error')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed' })
  })

  test('of which the upstream makes one only is complete', async () => {
    const { caller, spent } = await open(end)
    expect((await caller.whole()).text).toBe(image('first'))
    expect(await spent()).toBe(price)
  })
})
