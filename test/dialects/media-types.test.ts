// An image reaches the upstream with the type that its bytes have, whatever the caller has declared. A text file reaches
// it in a form that it reads.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
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

describe('a text file', () => {
  const words = 'año,1\nb,2'
  const base64 = Buffer.from(words).toString('base64')

  /** Each way in which a caller sends a text file: the path, and the body for a model. */
  const files: readonly (readonly [string, (model: string) => readonly [path: string, body: object]])[] = [
    ['of Gemini', model => geminiFile(model, { mimeType: 'text/csv', data: base64 })],
    ['of Gemini with a type that says nothing', model => geminiFile(model, unknownType('a.csv'))],
    ['of Responses', model => responsesFile(model, { file_data: `data:text/plain;base64,${base64}` })],
    ['of Responses, by its name', model => responsesFile(model, { file_data: base64, filename: 'A.TXT' })],
    ['of Responses with a type that says nothing', model => responsesFile(model, octets('notes.md'))],
    ['of chat, by its name', model => chatFile(model, { file_data: base64, filename: 'a.csv' })],
    ['of chat with a type that says nothing', model => chatFile(model, octets('a.json'))],
  ]
  const unknownType = (displayName: string) => ({ mimeType: 'application/octet-stream', data: base64, displayName })
  const octets = (filename: string) => ({ filename, file_data: `data:application/octet-stream;base64,${base64}` })

  const geminiFile = (model: string, inlineData: object) =>
    [`/v1beta/models/${model}:generateContent`, { contents: [{ parts: [{ inlineData }] }] }] as const
  const responsesFile = (model: string, file: object) =>
    ['/v1/responses', { model, input: [{ role: 'user', content: [{ type: 'input_file', ...file }] }] }] as const
  const chatFile = (model: string, file: object) =>
    ['/v1/chat/completions', { model, messages: [{ role: 'user', content: [{ type: 'file', file }] }] }] as const

  /** The bodies that upstreams get. The other dialects read text files. */
  const asText: readonly Dialect[] = ['openai-chat', 'ark', 'anthropic-messages']

  async function send(path: string, body: object): Promise<string> {
    const answer = await fetch(harness.url + path, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
    return harness.upstream.requests.at(-1)!.body.toString()
  }

  test.each(files)('%s is text for an upstream that reads only PDF', async (name, requestFor) => {
    for (const upstream of asText) {
      // A call in the dialect of the upstream passes as it is.
      if (name.startsWith('of chat') && upstream === 'openai-chat') continue
      const sent = await send(...requestFor(modelOf(upstream)))
      expect([upstream, sent]).toEqual([upstream, expect.stringContaining(JSON.stringify(words).slice(1, -1))])
      expect(sent).not.toContain(base64)
    }
  })

  test.each(files)('%s has the type of a text for an upstream that reads text files', async (name, requestFor) => {
    for (const upstream of ['gemini', 'openai-responses'] as const) {
      if (name.startsWith(upstream === 'gemini' ? 'of Gemini' : 'of Responses')) continue
      const sent = await send(...requestFor(modelOf(upstream)))
      expect(sent).toContain(base64)
      expect(sent).toMatch(/"data:text\/|"data:application\/json|"mimeType":"(?:text\/|application\/json)/)
    }
  })

  test('that is a PDF stays a file, because it was reserved as one', async () => {
    const pdf = Buffer.from('%PDF-1.4\n').toString('base64')
    const sent = await send(...responsesFile(modelOf('openai-chat'), { file_data: pdf, filename: 'a.txt' }))
    expect(sent).toContain(`"file_data":"data:application/pdf;base64,${pdf}"`)
    // The signature may also come later.
    const late = Buffer.from('x\n%PDF-1.4\n').toString('base64')
    const second = await send(...responsesFile(modelOf('openai-chat'), { file_data: late, filename: 'a.txt' }))
    expect(second).toContain(late)
  })
})
