// What is stored, and what the caller gets, when the settlement or the storing of a response fails.

import { expect, test } from 'bun:test'
import { buildLog } from '../../base/log.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { newCallParts } from '../../pipeline/exchange.ts'
import { StoredCall } from '../../pipeline/settle/stored-call.ts'
import type { ResponseFacts } from '../../store/vault/vault-types.ts'
import type { ResponseBody } from '../../vault/responses.ts'
import { callerResponse, settleWithResponse } from './store-response.ts'

const completed = { outcome: 'completed', status: 200 } as const
const response = { id: 'resp_1', status: 'completed', output: [{ type: 'message', id: 'msg_1' }] }

function exchangeOf(kept = new StoredCall([{ type: 'message' }], undefined)): Exchange {
  kept.takeLast(Buffer.from(JSON.stringify(response)))
  return {
    requestId: 'req_1',
    createdMs: 1,
    attempts: [{ channelId: 'p#1' }],
    ...newCallParts(),
    storage: { storedCall: kept },
    permit: { caller: { accountId: 1, keyId: 2 } },
    attempt: { candidate: { provider: { id: 'p', can: {} }, model: { id: 'm' } }, translation: {} },
  } as unknown as Exchange
}

interface Doing {
  readonly settle?: () => Promise<void>
  readonly put?: () => Promise<'kept' | 'too_large'>
}

function keeping({ settle = async () => {}, put = async () => 'kept' }: Doing) {
  const rows = new Map<string, ResponseBody | undefined>()
  const run = settleWithResponse(settle, {
    log: buildLog('error', () => {}),
    responses: {
      async put(facts: ResponseFacts, body?: ResponseBody) {
        const done = await put()
        if (done === 'kept') rows.set(facts.id, body)
        return done
      },
      delete: async ({ id }) => rows.delete(id),
    },
  })
  return { run, rows }
}

const isOver = (promise: Promise<void>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<boolean>(resolve => setTimeout(resolve, 20, false))])

test('the end waits until the response is stored and the call is settled', async () => {
  const never = new Promise<never>(() => {})
  expect(await isOver(keeping({ put: () => never }).run(exchangeOf(), completed))).toBe(false)
  expect(await isOver(keeping({ settle: () => never }).run(exchangeOf(), completed))).toBe(false)
  const { run, rows } = keeping({})
  await run(exchangeOf(), completed)
  expect(callerResponse(rows.get('resp_1')!)).toEqual(response)
})

test('without a settlement there is no answer, so nothing stays stored', async () => {
  const { run, rows } = keeping({ settle: () => Promise.reject(new Error('the disk')) })
  await expect(run(exchangeOf(), completed)).rejects.toThrow('the disk')
  expect(rows.size).toBe(0)
})

test.each([
  ['does not fit', async () => 'too_large' as const],
  ['cannot be written', () => Promise.reject(new Error('the disk'))],
])('a response that %s is still answered, and the answer says that it is not stored', async (_why, put) => {
  const exchange = exchangeOf()
  await keeping({ put }).run(exchange, completed)
  expect(exchange.storage.notStored).toBe(true)
})

test('a call ends once, as its first ending says', async () => {
  let settles = 0
  const exchange = exchangeOf()
  const { run, rows } = keeping({ settle: async () => void settles++ })
  await Promise.all([run(exchange, { outcome: 'client_left', status: 499 }), run(exchange, completed)])
  expect([settles, rows.size]).toEqual([1, 0])
})

test('a background response gets the status of its ending', async () => {
  const kept = new StoredCall([], undefined)
  kept.queuedResponse = { id: 'resp_1', status: 'queued', output: [] }
  const { run, rows } = keeping({})
  await run(exchangeOf(kept), { outcome: 'upstream_failed', status: 502, error: 'upstream_unusable' })
  expect(callerResponse(rows.get('resp_1')!)).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
})
