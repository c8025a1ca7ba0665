// Callers that wait for a response which another process makes.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import { replayEvents } from '../../protocols/openai-responses/event-replay.ts'
import { protocols } from '../../protocols/protocols.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ResponseBody } from '../../vault/responses.ts'
import { ReadingTurns } from './reading-turns.ts'
import type { StoredResponseRequest, StoredResponseRequestsParts } from './requests.ts'
import { buildStoredResponseRequests } from './requests.ts'

/**
 * A response that another process makes until `state.isOver` is set. While `isHeld` is set, that process has still to store
 * the events.
 */
function madeElsewhere() {
  const onDisconnect: (() => void)[] = []
  const state = {
    looks: 0,
    finds: 0,
    reads: 0,
    isOver: false,
    isHeld: false,
    isDeleted: false,
    endsAtFind: 0,
    onDisconnect,
  }
  const wishes: string[] = []
  const response: Json = { id: 'resp_1', output: [], status: 'queued', background: true }
  const body: ResponseBody = { input: [], output: [], response, events: '' }
  const stored = { accountId: 1, id: 'resp_1', upstreamId: null, body }
  const requests = buildStoredResponseRequests({
    responses: {
      async head() {
        const status = state.isOver ? 'cancelled' : 'queued'
        state.isOver ||= ++state.finds === state.endsAtFind
        return { ...stored, body: undefined, isUnread: true, status }
      },
      async get() {
        state.reads++
        return { ...stored, status: state.isOver ? 'cancelled' : 'queued' }
      },
      async delete() {
        state.isDeleted = true
        return true
      },
    },
    background: {
      find: () => undefined,
      heartbeatMs: 10_000,
      async askElsewhere(_owner: unknown, wish: string) {
        wishes.push(wish)
      },
      async isElsewhere() {
        state.looks++
        return state.isHeld || !state.isOver
      },
    },
    upstreams: { storingChannel: () => undefined },
    turns: new ReadingTurns(),
    deadlines: new Deadlines(() => 0),
  } as unknown as StoredResponseRequestsParts)
  const request = {
    method: 'GET',
    path: '/v1/responses/resp_1',
    caller: { accountId: 1 },
    query: (name: string) => (name === 'stream' ? 'true' : null),
    queries: () => [],
    header: () => undefined,
    allowSilence() {},
    onDisconnect: (listener: () => void) => void state.onDisconnect.push(listener),
  } as unknown as StoredResponseRequest
  return {
    state,
    wishes,
    stored,
    send: (name: 'retrieve' | 'cancel' | 'delete') => requests[name](request, protocols['openai-responses']),
  }
}

test('follow its events together, however many they are', async () => {
  const { state, wishes, send } = madeElsewhere()
  const streams = Array.from({ length: 100 }, async () => (await send('retrieve')).text())
  while (state.finds < 100 || state.reads < 2) await Bun.sleep(10)
  state.isOver = true
  const texts = await Promise.all(streams)
  expect(new Set(texts).size).toBe(1)
  expect(texts[0]).toContain('"status":"cancelled"')
  expect(state.reads).toBeLessThan(10)
  // Once in each round.
  expect(new Set(wishes)).toEqual(new Set(['events']))
  expect(wishes.length).toBeLessThan(10)
})

test('of one account are bounded in number, and make room when they leave', async () => {
  const { state, send } = madeElsewhere()
  const open = await Promise.all(Array.from({ length: bounds.followersOfAccountMax }, () => send('retrieve')))
  const refused = send('retrieve')
  await expect(refused).rejects.toMatchObject({ code: 'concurrency_exceeded' })
  await open[0]!.body!.cancel()
  // The caller of the second one was gone before its answer was sent.
  state.onDisconnect[1]!()
  const more = [await send('retrieve'), await send('retrieve')]
  await expect(send('retrieve')).rejects.toMatchObject({ code: 'concurrency_exceeded' })
  state.isOver = true
  await Promise.all([...open.slice(2), ...more].map(response => response.text()))
  // All streams are over.
  expect((await Promise.all(Array.from({ length: bounds.followersOfAccountMax }, () => send('retrieve')))).length).toBe(
    bounds.followersOfAccountMax,
  )
})

test('ask for its events again and again, as long as somebody follows them', async () => {
  const { state, wishes, send } = madeElsewhere()
  const reader = (await send('retrieve')).body!.getReader()
  while (wishes.length < 3) await Bun.sleep(10)
  await reader.cancel()
  const { length } = wishes
  const { reads } = state
  await Bun.sleep(2_000)
  // It may have been in the middle of a round.
  expect(wishes.length - length).toBeLessThan(2)
  expect(state.reads - reads).toBeLessThan(2)
})

test('get its end although its events did not fit, or were not stored for another reason', async () => {
  const { state, stored, send } = madeElsewhere()
  const whole = 'piece '.repeat(100)
  const message = { type: 'message', id: 'msg_1', content: [{ type: 'output_text', text: whole, annotations: [] }] }
  const over = { id: 'resp_1', output: [message], status: 'completed', background: true }
  const opening = replayEvents(over, -1).split('\n\n').slice(0, 4)
  const pieces = Array.from({ length: 20 }, (_, at) => {
    const delta = { type: 'response.output_text.delta', sequence_number: 4 + at, output_index: 0, delta: 'piece ' }
    return `event: ${delta.type}\ndata: ${JSON.stringify(delta)}`
  })
  const known = [...opening, ...pieces].map(event => `${event}\n\n`).join('')
  stored.body = { ...stored.body, events: known }
  const text = (await send('retrieve')).text()
  while (state.reads < 3) await Bun.sleep(10)
  stored.body = { input: [], output: [], response: over }
  state.isOver = true
  const got = await text
  expect(got).toStartWith(known)
  const rest = got.slice(known.length).split('\n\n')
  expect(rest.map(event => event.split('\n')[0])).toEqual([
    'event: response.output_item.done',
    'event: response.completed',
    'data: [DONE]',
    '',
  ])
  expect(JSON.parse(rest[1]!.split('\ndata: ')[1]!)).toEqual({
    type: 'response.completed',
    sequence_number: 25,
    response: over,
  })
})

test('wait for its end together, however many they are', async () => {
  const { state, wishes, send } = madeElsewhere()
  const answers = Array.from({ length: 100 }, () => send('cancel'))
  while (state.looks < 102) await Bun.sleep(10)
  state.isOver = true
  for (const answer of await Promise.all(answers)) expect(await answer.json()).toMatchObject({ status: 'cancelled' })
  // One look of each caller, and a few of all together.
  expect(state.looks).toBeLessThan(110)
  expect(new Set(wishes)).toEqual(new Set(['cancel']))
})

test('get what it has become if it ends just after they have read it', async () => {
  for (const name of ['retrieve', 'cancel'] as const) {
    const { state, send } = madeElsewhere()
    state.endsAtFind = 1
    expect(await (await send(name)).text()).toContain('"status":"cancelled"')
  }
})

test('a stored response is read in the turns of its account, and only where its body is needed', async () => {
  const charged: number[] = []
  const owners: string[] = []
  const events = replayEvents({ id: 'resp_1', output: [], status: 'completed' }, -1)
  const response = { id: 'resp_1', output: [], status: 'completed', background: true }
  const stored = { accountId: 1, id: 'resp_1', upstreamId: null, status: 'completed' }
  const requests = buildStoredResponseRequests({
    responses: {
      head: async () => ({ ...stored, isUnread: true }),
      async get(_owner: unknown, charge: (bytes: number) => void) {
        charge(5_000_000)
        return { ...stored, body: { input: [], output: [], response, events } }
      },
      delete: async () => true,
    },
    background: { find: () => undefined, isElsewhere: async () => false },
    previousResponses: { inputItemsOf: async () => [] },
    upstreams: { storingChannel: () => undefined },
    turns: {
      run(owner: { readonly name: string }, work: (charge: (bytes: number) => void) => unknown) {
        owners.push(owner.name)
        return work(bytes => void charged.push(bytes))
      },
    },
    deadlines: new Deadlines(() => 0),
  } as unknown as StoredResponseRequestsParts)
  const ask = (query: Record<string, string>, method = 'GET') =>
    ({
      method,
      path: '/v1/responses/resp_1',
      caller: { accountId: 1 },
      query: (name: string) => query[name] ?? null,
      queries: () => [],
      allowSilence() {},
      onDisconnect() {},
    }) as unknown as StoredResponseRequest
  const protocol = protocols['openai-responses']
  await requests.delete(ask({}), protocol)
  await requests.inputItems(ask({}), protocol)
  expect(owners).toEqual([])
  await requests.retrieve(ask({}), protocol)
  await requests.cancel(ask({}), protocol)
  await requests.retrieve(ask({ stream: 'true' }, 'HEAD'), protocol)
  await requests.retrieve(ask({ stream: 'true' }), protocol)
  expect(charged).toEqual([5_000_000, 5_000_000, 5_000_000, 5_000_000])
  // Each event is parsed to find its number.
  const after = await requests.retrieve(ask({ stream: 'true', starting_after: '1000' }), protocol)
  expect(charged.slice(4)).toEqual([5_000_000, events.length])
  expect(await after.text()).not.toContain('response.created')
  expect(new Set(owners)).toEqual(new Set(['account 1']))
})

test('an upstream that stores a response is asked for a stream only where one is counted', async () => {
  const sent: string[] = []
  const requests = buildStoredResponseRequests({
    responses: { head: async () => ({ accountId: 1, id: 'resp_1', upstreamId: 'resp_1', status: 'completed' }) },
    upstreams: {
      storingChannel: () => ({}),
      async send(_keeper: unknown, { query }: { readonly query: URLSearchParams }) {
        sent.push(query.toString())
        return new Response('{}')
      },
    },
    deadlines: new Deadlines(() => 0),
  } as unknown as StoredResponseRequestsParts)
  for (const [method, search] of [
    ['GET', 'stream=true&starting_after=3'],
    ['GET', 'stream=false&stream=true'],
    ['GET', 'stream=1&include=x'],
    ['HEAD', 'stream=true'],
  ] as const) {
    const fields = new URLSearchParams(search)
    const request = {
      method,
      path: '/v1/responses/resp_1',
      caller: { accountId: 1 },
      query: (name: string) => fields.get(name),
      queries: (name: string) => fields.getAll(name),
      onDisconnect() {},
    } as unknown as StoredResponseRequest
    await requests.retrieve(request, protocols['openai-responses'])
  }
  expect(sent).toEqual(['starting_after=3&stream=true', '', 'include=x', ''])
})

test('get all events of a response that is over and whose events are stored a moment later', async () => {
  const { state, stored, send } = madeElsewhere()
  Object.assign(state, { isOver: true, isHeld: true })
  const response = { id: 'resp_1', output: [], status: 'completed', background: true }
  stored.body = { input: [], output: [], response }
  const text = (await send('retrieve')).text()
  while (state.reads < 2) await Bun.sleep(10)
  const events = 'event: response.output_text.delta\ndata: {"sequence_number":0}\n\ndata: [DONE]\n\n'
  stored.body = { input: [], output: [], response, events }
  state.isHeld = false
  expect(await text).toBe(events)
})

test('delete a response that is over only when its process stores nothing of it any more', async () => {
  const { state, wishes, send } = madeElsewhere()
  Object.assign(state, { isOver: true, isHeld: true })
  const deleted = send('delete')
  while (state.looks < 2) await Bun.sleep(10)
  expect([wishes, state.isDeleted]).toEqual([['delete'], false])
  state.isHeld = false
  await deleted
  expect(state.isDeleted).toBe(true)
})
