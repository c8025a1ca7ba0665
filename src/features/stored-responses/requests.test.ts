// Callers that wait for a response which another process makes.

import { expect, test } from 'bun:test'
import { replayEvents } from '../../protocols/openai-responses/event-replay.ts'
import { protocols } from '../../protocols/protocols.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ResponseBody } from '../../vault/responses.ts'
import type { StoredResponseRequest, StoredResponseRequestsParts } from './requests.ts'
import { buildStoredResponseRequests } from './requests.ts'

/** A response that another process makes until `state.isOver` is set. */
function madeElsewhere() {
  const state = { looks: 0, reads: 0, isOver: false, endsAtRead: 0 }
  const asked: string[] = []
  const response: Json = { id: 'resp_1', output: [], status: 'queued', background: true }
  const body: ResponseBody = { input: [], output: [], response, events: '' }
  const stored = { accountId: 1, id: 'resp_1', upstreamId: null, body }
  const requests = buildStoredResponseRequests({
    responses: {
      async get() {
        const status = state.isOver ? 'cancelled' : 'queued'
        state.isOver ||= ++state.reads === state.endsAtRead
        return { ...stored, status }
      },
    },
    background: {
      find: () => undefined,
      heartbeatMs: 10_000,
      async askElsewhere(_owner: unknown, wish: string) {
        asked.push(wish)
      },
      async isElsewhere() {
        state.looks++
        return !state.isOver
      },
    },
    upstreams: { storingChannel: () => undefined },
  } as unknown as StoredResponseRequestsParts)
  const ask = {
    path: '/v1/responses/resp_1',
    caller: { accountId: 1 },
    query: (name: string) => (name === 'stream' ? 'true' : null),
    queries: () => [],
    header: () => undefined,
    allowSilence() {},
  } as unknown as StoredResponseRequest
  return {
    state,
    asked,
    stored,
    send: (name: 'retrieve' | 'cancel') => requests[name](ask, protocols['openai-responses']),
  }
}

test('follow its events together, however many they are', async () => {
  const { state, asked, send } = madeElsewhere()
  const streams = Array.from({ length: 100 }, async () => (await send('retrieve')).text())
  // Each of them finds the response first.
  while (state.reads < 102) await Bun.sleep(10)
  state.isOver = true
  const texts = await Promise.all(streams)
  expect(new Set(texts).size).toBe(1)
  expect(texts[0]).toContain('"status":"cancelled"')
  expect(state.reads).toBeLessThan(110)
  // Once in each round.
  expect(new Set(asked)).toEqual(new Set(['events']))
  expect(asked.length).toBeLessThan(10)
})

test('ask for its events again and again, as long as somebody follows them', async () => {
  const { state, asked, send } = madeElsewhere()
  const reader = (await send('retrieve')).body!.getReader()
  while (asked.length < 3) await Bun.sleep(10)
  await reader.cancel()
  const { length } = asked
  const { reads } = state
  await Bun.sleep(2_000)
  // It may have been in the middle of a round.
  expect(asked.length - length).toBeLessThan(2)
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
  const { state, asked, send } = madeElsewhere()
  const answers = Array.from({ length: 100 }, () => send('cancel'))
  while (state.looks < 102) await Bun.sleep(10)
  state.isOver = true
  for (const answer of await Promise.all(answers)) expect(await answer.json()).toMatchObject({ status: 'cancelled' })
  // One look of each caller, and a few of all together.
  expect(state.looks).toBeLessThan(110)
  expect(new Set(asked)).toEqual(new Set(['cancel']))
})

test('get what it has become if it ends just after they have read it', async () => {
  for (const name of ['retrieve', 'cancel'] as const) {
    const { state, send } = madeElsewhere()
    state.endsAtRead = 1
    expect(await (await send(name)).text()).toContain('"status":"cancelled"')
  }
})
