// A request of some kilobytes that names stored responses costs about as much as a request that contains them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { modelOf, startDialects } from '../dialects/upstreams.ts'
import { expectCheap } from '../support/cpu.ts'
import type { Harness } from '../support/gateway.ts'

const TIMEOUT_MS = 120_000
const paths = ['/v1/responses/input_tokens', '/v1/responses'] as const
const model = modelOf('openai-chat')

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key({ credit: '1000' })
})
afterAll(() => harness.stop())

interface Answer {
  readonly id: string
  readonly object: string
  readonly error?: { readonly code: string }
}

async function post(path: string, body: object): Promise<{ readonly status: number; readonly json: Answer }> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const request = { method: 'POST', headers, body: JSON.stringify({ model, max_output_tokens: 16, ...body }) }
  const answer = await fetch(harness.url + path, request)
  return { status: answer.status, json: (await answer.json()) as Answer }
}

/** Stores a response with a short and a long message, and returns the ids of both. */
async function store(bytes: number): Promise<readonly string[]> {
  const input = ['hi', 'x'.repeat(bytes)].map(content => ({ role: 'user', content }))
  const { id } = (await post('/v1/responses', { input })).json
  const headers = { authorization: `Bearer ${key}` }
  const listed = await fetch(`${harness.url}/v1/responses/${id}/input_items?order=asc`, { headers })
  return ((await listed.json()) as { data: { id: string }[] }).data.map(item => item.id)
}

const named = (id: string, count: number) => ({
  input: Array.from({ length: count }, () => ({ type: 'item_reference', id })),
})

test(
  'a thousand references to one stored response read it once',
  async () => {
    const [short] = await store(2 * 1024 * 1024)
    const { status, json } = await post(paths[0], named(short!, 1_000))
    expect([status, json.object]).toEqual([200, 'response.input_tokens'])
    await expectCheap(3_000, () => post(paths[0], named(short!, 1_000)))
  },
  TIMEOUT_MS,
)

test(
  'references that become too many or too large are refused in the dialect of the caller',
  async () => {
    const [, long] = await store(2 * 1024 * 1024)
    for (const path of paths) {
      const large = await post(path, named(long!, 60))
      expect([large.status, large.json.error?.code]).toEqual([413, 'request_too_large'])
      const many = await post(path, named(long!, bounds.referencesOfCallMax + 1))
      expect([many.status, many.json.error?.code]).toEqual([400, 'field_invalid'])
    }
  },
  TIMEOUT_MS,
)

test(
  'a long conversation is continued with all of its turns',
  async () => {
    let previous: string | undefined
    for (const letter of 'abc') {
      const input = letter.repeat(1024 * 1024)
      const { status, json } = await post('/v1/responses', {
        input,
        ...(previous && { previous_response_id: previous }),
      })
      expect(status).toBe(200)
      previous = json.id
    }
    const sent = harness.upstream.requests.findLast(request => request.method === 'POST')!
    const { messages } = JSON.parse(Buffer.from(sent.body).toString()) as {
      messages: { role: string; content: string }[]
    }
    const ofUser = messages.filter(({ role }) => role === 'user')
    expect(ofUser.map(({ content }) => [content[0], content.length])).toEqual(
      [...'abc'].map(letter => [letter, 1024 * 1024]),
    )
  },
  TIMEOUT_MS,
)
