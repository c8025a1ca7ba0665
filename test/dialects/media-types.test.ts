// An image reaches the upstream with the type that its bytes have, whatever the caller has declared.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key()
})
afterAll(() => harness.stop())

/** A whole picture of one pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const unknown = 'AAAA'

async function sendImage(upstream: Dialect, url: string): Promise<string> {
  const image = { type: 'image_url', image_url: { url } }
  const answer = await fetch(`${harness.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: modelOf(upstream), messages: [{ role: 'user', content: [image] }] }),
  })
  expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
  return harness.upstream.requests.at(-1)!.body.toString()
}

test.each<readonly [Dialect, string]>([
  ['anthropic-messages', 'media_type'],
  ['gemini', 'mimeType'],
])('%s gets the type of the bytes, or the registered name of the declared type', async (upstream, field) => {
  for (const declared of ['image/jpg', 'image/jpeg', 'image/png', 'application/octet-stream'])
    expect(await sendImage(upstream, `data:${declared};base64,${png}`)).toContain(`"${field}":"image/png"`)
  expect(await sendImage(upstream, `data:image/jpg;base64,${unknown}`)).toContain(`"${field}":"image/jpeg"`)
  expect(await sendImage(upstream, `data:image/webp;base64,${unknown}`)).toContain(`"${field}":"image/webp"`)
})
