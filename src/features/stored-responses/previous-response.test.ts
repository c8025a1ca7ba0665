// What a small request that names stored responses may cost: how often and in which order they are read, when reading
// stops, who parses what was rebuilt, and who waits.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import type { Refusal } from '../../base/errors.ts'
import { Seal } from '../../base/secrets/seal.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange, Permit } from '../../pipeline/exchange.ts'
import { newCallParts } from '../../pipeline/exchange.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { protocols } from '../../protocols/protocols.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ChainOptions, ResponseBody, StoredResponse } from '../../vault/responses.ts'
import { buildCompaction } from './compaction.ts'
import { buildPreviousResponses } from './previous-response.ts'
import { ReadingTurns } from './reading-turns.ts'

const protocol = protocols['openai-responses']
const noRequest = { path: '', query: () => null, header: () => undefined }
const MIB = 1024 * 1024

const callOf = (json: object): Call =>
  protocol.readCall(Buffer.from(JSON.stringify({ model: 'p/m', ...json })), noRequest)
const permitOf = (accountId: number): Permit => ({ caller: { accountId } }) as unknown as Permit

/** The ids have eleven characters, as those of the gateway. */
const requestOf = (at: number): string => `r${at.toString().padStart(10, '0')}`
const responseOf = (at: number): string => `resp_${requestOf(at)}`
const referenceTo = (at: number, index = 0): Json => ({
  type: 'item_reference',
  id: `msg_req${requestOf(at)}${index.toString().padStart(4, '0')}`,
})
const messageOf = (at: number, text: string): Json => ({
  type: 'message',
  role: 'user',
  id: referenceTo(at).id,
  content: text,
})

interface Stored {
  readonly bytes?: number
  readonly body?: Partial<ResponseBody>
}

/** Stored responses that count how they are read. A body is read when its bytes were charged. */
class Shelf {
  readonly read: string[] = []
  readonly stored = new Map<string, Stored>()
  readonly parsed: { readonly bytes: number; readonly name: string }[] = []
  reading = 0
  readingMost = 0
  /** Reads wait for it. */
  hold: Promise<unknown> = Promise.resolve()

  readonly previous = buildPreviousResponses({
    responses: {
      head: async ({ id, accountId }) =>
        this.stored.has(id) ? ({ id, accountId, status: 'completed', isUnread: true } as StoredResponse) : undefined,
      get: async ({ id }, charge) => {
        this.readingMost = Math.max(this.readingMost, ++this.reading)
        try {
          await Bun.sleep(0)
          return this.stored.has(id) ? await this.#link(id, charge) : undefined
        } finally {
          this.reading--
        }
      },
      chain: async ({ id }, { charge, onLink }: ChainOptions = {}) => {
        const link = await this.#link(id, charge)
        onLink?.(link)
        return { done: 'found', links: [link] }
      },
    },
    compaction: { close: () => '', open: () => undefined },
    catalogue: { findChannel: () => undefined, findOrSuccessor: () => undefined },
    largeJson: {
      read: async (body, { name }) => {
        this.parsed.push({ bytes: body.length, name })
        return body
      },
    },
    turns: new ReadingTurns(),
  })

  count(json: object, accountId = 1): Promise<Call> {
    return this.previous.withAllTurns(callOf(json), permitOf(accountId), protocol)
  }

  async #link(id: string, charge: ChainOptions['charge']): Promise<StoredResponse> {
    const { bytes = 1_000, body } = this.stored.get(id)!
    charge?.(bytes)
    this.read.push(id)
    await this.hold
    return {
      id,
      status: 'completed',
      body: { input: [], output: [], response: {}, ...body },
    } as unknown as StoredResponse
  }
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (fault: Refusal) => fault.code,
  )

test('a response is read once, however many of its items are named, and no two at the same time', async () => {
  const shelf = new Shelf()
  for (const at of [1, 2, 3]) shelf.stored.set(responseOf(at), { body: { input: [messageOf(at, `text ${at}`)] } })
  const input = Array.from({ length: 300 }, (_, at) => referenceTo((at % 3) + 1))
  const call = await shelf.count({ input })
  expect((call.json.input as Json[]).map(({ content }) => content)).toEqual(
    input.map((_, at) => `text ${(at % 3) + 1}`),
  )
  expect(shelf.read).toEqual([responseOf(1), responseOf(2), responseOf(3)])
  expect(shelf.readingMost).toBe(1)
})

test('too many references are refused before anything is read', async () => {
  const shelf = new Shelf()
  shelf.stored.set(responseOf(1), { body: { input: [messageOf(1, 'x')] } })
  const input = Array.from({ length: bounds.referencesOfCallMax + 1 }, () => referenceTo(1))
  expect(await codeOf(shelf.count({ input }))).toBe('field_invalid')
  expect(shelf.read).toEqual([])
  expect(await codeOf(shelf.count({ input: input.slice(1) }))).toBe('done')
})

test('references to many large responses are refused before more is read than a conversation may have', async () => {
  const shelf = new Shelf()
  const input = Array.from({ length: 40 }, (_, at) => referenceTo(at))
  input.forEach((_, at) => shelf.stored.set(responseOf(at), { bytes: 8 * MIB, body: { input: [messageOf(at, 'x')] } }))
  expect(await codeOf(shelf.count({ input }))).toBe('body_too_large')
  // It starts again when it is known to be large.
  expect(new Set(shelf.read).size).toBe(bounds.responseChainBytesMax / (8 * MIB))
  expect(shelf.read.length).toBeLessThan(10)
})

test('an item that is named again and again is written once, and refused at the size of a body', async () => {
  const shelf = new Shelf()
  let writes = 0
  const text = 'x'.repeat(2 * MIB)
  const item = {
    ...messageOf(1, ''),
    toJSON() {
      writes++
      return { type: 'message', role: 'user', content: text }
    },
  }
  shelf.stored.set(responseOf(1), { bytes: 60_000, body: { input: [item] } })
  const named = (count: number) => ({ input: Array.from({ length: count }, () => referenceTo(1)) })
  expect(await codeOf(shelf.count(named(60)))).toBe('body_too_large')
  // Once in each class of sizes at most.
  expect(writes).toBeLessThan(4)
})

function exchangeOf(call: Call, accountId = 1): Exchange {
  const provider = { id: 'p', can: {} }
  return {
    requestId: 'req_1',
    call,
    protocol,
    ...newCallParts(),
    storage: {},
    lifetime: { stop: new Stop() },
    permit: permitOf(accountId),
    attempt: { candidate: { upstreamProtocol: protocols['openai-chat'], provider } },
  } as unknown as Exchange
}

test('a rebuilt body is parsed like a received one of its size, for its account', async () => {
  const shelf = new Shelf()
  for (const [at, bytes] of [1_000, 100_000].entries()) {
    shelf.stored.set(responseOf(at), { bytes, body: { input: [messageOf(at, 'x'.repeat(bytes))] } })
  }
  const follow = (at: number): Call => callOf({ input: 'next', previous_response_id: responseOf(at) })
  const prepare = (at: number): Promise<Call> =>
    shelf.previous
      .find(follow(at), permitOf(7))!
      .then(found => shelf.previous.prepareCall(exchangeOf(follow(at), 7), found))
  for (const rebuild of [() => prepare(0), () => shelf.previous.withAllTurns(follow(0), permitOf(7), protocol)]) {
    expect((await rebuild()).json.input).toHaveLength(2)
  }
  expect(shelf.parsed).toEqual([])
  for (const rebuild of [() => prepare(1), () => shelf.previous.withAllTurns(follow(1), permitOf(7), protocol)]) {
    expect((await rebuild()).json.input).toHaveLength(2)
  }
  expect(shelf.parsed.map(({ name }) => name)).toEqual(['account 7', 'account 7'])
  for (const { bytes } of shelf.parsed) expect(bytes).toBeGreaterThan(100_000)
})

test('a large background call is parsed like a received one when it is written again', async () => {
  const shelf = new Shelf()
  const call = callOf({ input: 'x'.repeat(100_000), background: true })
  const { json } = await shelf.previous.prepareCall(exchangeOf(call), undefined)
  expect([json.background, (json.input as string).length]).toEqual([undefined, 100_000])
  expect(shelf.parsed.map(({ name }) => name)).toEqual(['account 1'])
})

test('large conversations of an account are read one after the other, and others do not wait for them', async () => {
  const shelf = new Shelf()
  shelf.stored.set(responseOf(1), { bytes: MIB, body: { input: [messageOf(1, 'x')] } })
  shelf.stored.set(responseOf(2), { bytes: 1_000, body: { input: [messageOf(2, 'x')] } })
  const held = Promise.withResolvers<void>()
  shelf.hold = held.promise
  const follow = (at: number) => ({ input: 'next', previous_response_id: responseOf(at) })
  const calls = [1, 1, 1, 2].map(at => shelf.count(follow(at)))
  const other = shelf.count(follow(1), 2)
  while (shelf.read.length < 3) await Bun.sleep(1)
  await Bun.sleep(20)
  // One of the three large ones, the small one, and that of the other account.
  expect(shelf.read.toSorted()).toEqual([responseOf(1), responseOf(1), responseOf(2)])
  held.resolve()
  await Promise.all([...calls, other])
  expect(shelf.read).toHaveLength(5)
})

test('a call that has ended while it waited reads nothing', async () => {
  const shelf = new Shelf()
  shelf.stored.set(responseOf(1), { bytes: MIB, body: { input: [messageOf(1, 'x')] } })
  const held = Promise.withResolvers<void>()
  shelf.hold = held.promise
  const following = callOf({ input: 'next', previous_response_id: responseOf(1) })
  const first = shelf.previous.withAllTurns(following, permitOf(1), protocol)
  while (shelf.read.length < 1) await Bun.sleep(1)
  const exchange = exchangeOf(following)
  const found = await shelf.previous.find(following, permitOf(1))!
  const waiting = shelf.previous.prepareCall(exchange, found).catch((reason: unknown) => reason)
  await Bun.sleep(5)
  exchange.lifetime.stop.stop({ outcome: 'client_left' })
  expect(await waiting).toEqual({ outcome: 'client_left' })
  held.resolve()
  await first
  await Bun.sleep(200)
  expect(shelf.read).toHaveLength(1)
})

test('the response that a call continues is found without reading its body', async () => {
  const shelf = new Shelf()
  shelf.stored.set(responseOf(1), { bytes: 8 * MIB })
  const found = await shelf.previous.find(callOf({ input: 'x', previous_response_id: responseOf(1) }), permitOf(1))
  expect(found).toMatchObject({ id: responseOf(1), isUnread: true })
  expect(shelf.read).toEqual([])
})

test('a compaction is charged before it is decrypted, also where the call is refused then', async () => {
  const compaction = buildCompaction(new Seal(buildSecretRing('a'.repeat(64))))
  const log: string[] = []
  const previous = buildPreviousResponses({
    responses: {
      head: async () => undefined,
      get: async () => undefined,
      chain: async ({ id }) => ({ done: 'missing', id }),
    },
    compaction: {
      ...compaction,
      open: (item, accountId, charge) =>
        compaction.open(item, accountId, bytes => {
          log.push('charged')
          charge(bytes)
        }),
    },
    catalogue: { findChannel: () => undefined, findOrSuccessor: () => undefined },
    largeJson: { read: async body => body },
    turns: new ReadingTurns(),
  })
  const items = Array.from({ length: 1_000 }, () => ({ type: 'message', role: 'user', content: 'x'.repeat(1_000) }))
  const content = await previous.compact({ accountId: 1, previous: undefined, items, bytes: 1_000 })
  const item = { type: 'compaction', encrypted_content: content }
  const opened = await previous.withAllTurns(callOf({ input: [item] }), permitOf(1), protocol)
  expect((opened.json.input as Json[]).length).toBe(1_000)
  // It was too large for the class of small conversations, where nobody waits.
  expect(log).toEqual(['charged', 'charged'])
  const unknown = previous.withAllTurns(callOf({ input: [item, referenceTo(1)] }), permitOf(1), protocol)
  expect(await codeOf(unknown)).toBe('reference_unknown')
  expect(log).toHaveLength(4)
  const changed = { ...item, encrypted_content: `${content.slice(0, 20)}AAAA${content.slice(24)}` }
  expect(await codeOf(previous.withAllTurns(callOf({ input: [changed] }), permitOf(1), protocol))).toBe('field_invalid')
})
