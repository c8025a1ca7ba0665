// Audio and images without a usage report: their tokens are estimated from the request, and charged at the rates of
// audio and images.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { says, sendsBytes, sendsEvents } from './upstream.ts'

const [PICTURE, SOUND] = [30_000, 50_000] // nano-dollars per token
const price = { input: '1', output: '2', outputImage: '30', outputAudio: '50' }
const provider = {
  id: 'brook',
  name: 'Brook',
  baseUrl: 'http://127.0.0.1:9',
  baseUrlEnv: 'BROOK_URL',
  keyEnv: 'BROOK_KEY',
  speaks: {
    'openai-speech': '/audio/speech',
    'openai-images': '/images/generations',
    'ark-images': '/ark/images/generations',
  },
  sign: 'bearer',
  models: [{ id: 'makes', price }],
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

/** The request, the upstream's answer, and the cost of the output. */
type Row = readonly [what: string, path: string, asked: object, upstream: Script, worth: number]
const rows: readonly Row[] = [
  ['sound', '/v1/audio/speech', speech, sendsBytes('audio/mpeg', [new Uint8Array(4_000)]), 150 * SOUND],
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
  const row = harness.records().at(-1)!
  expect(row).toMatchObject({ outcome: 'completed', usage_source: 'estimated' })
  expect(Number(row.cost)).toBe(Math.ceil(body.length / 4) * 1_000 + worth)
})
