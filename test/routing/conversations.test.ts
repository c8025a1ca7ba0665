// The conversation of a call in its record: the same for all turns of a chat, other for another chat and another account. The
// calls and the records are real; with WEIR_TEST_DATABASE=postgres they are in PostgreSQL.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { textId } from '../../src/base/ids.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, startHarness, until } from '../support/gateway.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startHarness()
  key = await harness.key()
})
afterAll(() => harness.stop())

const user = (content: string) => ({ role: 'user', content })
const assistant = (content: string) => ({ role: 'assistant', content })

async function post(path: string, body: object, by = key): Promise<Response> {
  const headers = { 'authorization': `Bearer ${by}`, 'content-type': 'application/json' }
  return await fetch(`${harness.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** The conversation in the record of a call. */
async function conversationOf(answer: Response): Promise<unknown> {
  await answer.text()
  await harness.idle()
  const id = answer.headers.get('x-request-id')!
  // The record of a call that is refused without a hold is written after its answer.
  await until(() => harness.records().some(({ call_id: call }) => textId('req', Number(call)) === id), 'a record')
  return (await harness.manage('GET', `/api/web/records/${id}`)).conversation
}

const turn = async (messages: readonly object[], by = key): Promise<unknown> =>
  await conversationOf(await chat(harness, by, { model: 'openai/gpt-4o-mini', messages }))

const first = [user('Where does the river go?')]
const second = [...first, assistant('To the sea.'), user('And then?')]

test('the turns of a chat have one id, and another chat has another one', async () => {
  const id = await turn(first)
  expect(id).toMatch(/^[0-9a-f]{16}$/)
  expect(await turn(second)).toBe(id)
  expect(await turn([user('Where does the rain go?')])).not.toBe(id)
})

test('the same chat of another account has another id', async () => {
  expect(await turn(first, await harness.key())).not.toBe(await turn(first))
})

test('the id is also in the record of a call that its balance does not cover', async () => {
  const id = await turn(first)
  const poor = await harness.key({ credit: '0' })
  const unpaid = await chat(harness, poor, { model: 'openai/gpt-4o-mini', messages: first })
  expect(unpaid.status).toBe(402)
  const unpaidId = await conversationOf(unpaid)
  expect(unpaidId).toMatch(/^[0-9a-f]{16}$/)
  expect(unpaidId).not.toBe(id)
})

test('a stored response is continued in the same conversation', async () => {
  const ask = async (body: object): Promise<Response> =>
    await post('/v1/responses', { model: 'demo/echo', store: true, ...body })
  const begun = await ask({ input: 'Name three rivers.' })
  const { id: previous } = (await begun.clone().json()) as { id: string }
  const id = await conversationOf(begun)
  expect(id).toMatch(/^[0-9a-f]{16}$/)
  expect(await conversationOf(await ask({ input: 'And three lakes.', previous_response_id: previous }))).toBe(id!)
  expect(await conversationOf(await ask({ input: 'And three lakes.' }))).not.toBe(id)
})

test('a call without a conversation, or that is refused before it is routed, has none', async () => {
  const embedded = await post('/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'river' })
  expect(embedded.status).toBe(200)
  expect(await conversationOf(embedded)).toBeNull()
  const unknown = await chat(harness, key, { model: 'openai/no-such-model', messages: first })
  expect(unknown.status).toBe(404)
  expect(await conversationOf(unknown)).toBeNull()
})

test('a search finds the turns of a key, and says what it needs', async () => {
  const own = await harness.key()
  const id = String(await turn(first, own))
  await turn(second, own)
  await turn([user('Another one')], own)
  const { data } = (await harness.manage('GET', '/api/web/records?limit=1')) as { data: { key: string }[] }
  const since = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
  const search = async (query: string): Promise<unknown[]> =>
    (await harness.manage('GET', `/api/web/records?conversation=${id}&${query}`)).data as unknown[]
  const found = await search(`key=${data[0]!.key}&from=${since(1)}`)
  expect(found).toEqual([expect.objectContaining({ conversation: id }), expect.objectContaining({ conversation: id })])
  await expect(search(`from=${since(1)}`)).rejects.toThrow('A search for a conversation needs "key".')
  await expect(search(`key=${data[0]!.key}&from=${since(8)}`)).rejects.toThrow('at most 7 days before')
  await expect(search(`key=${data[0]!.key}`)).rejects.toThrow('needs "from"')
})
