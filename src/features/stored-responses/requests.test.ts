// Callers that wait for a response which another process makes.

import { expect, test } from 'bun:test'
import { protocols } from '../../protocols/protocols.ts'
import type { StoredResponseRequest, StoredResponseRequestsParts } from './requests.ts'
import { buildStoredResponseRequests } from './requests.ts'

/** A response that another process makes until `state.isOver` is set. */
function madeElsewhere() {
  const state = { looks: 0, reads: 0, isOver: false, endsAtRead: 0 }
  const asked: string[] = []
  const response = { id: 'resp_1', output: [], status: 'queued', background: true }
  const stored = { accountId: 1, id: 'resp_1', upstreamId: null, body: { input: [], output: [], response, events: '' } }
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
  return { state, asked, send: (name: 'retrieve' | 'cancel') => requests[name](ask, protocols['openai-responses']) }
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
  expect(asked).toEqual(['events'])
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
