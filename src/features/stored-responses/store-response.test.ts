// Tests what is stored, and what the caller gets, when the settlement or the storing of a response fails.

import { expect, test } from 'bun:test'
import { buildLog } from '../../base/log.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { newCallParts } from '../../pipeline/exchange.ts'
import { StoredCall } from '../../pipeline/settle/stored-call.ts'
import type { ResponseFacts } from '../../store/vault/vault-types.ts'
import type { ResponseBody } from '../../vault/responses.ts'
import { callerResponse, settleWithResponse } from './store-response.ts'

const completed = { outcome: 'completed', status: 200 } as const
const response = { id: 'resp_1', status: 'completed', output: [{ type: 'message', id: 'msg_1' }] }

function exchangeOf(storedCall = new StoredCall([{ type: 'message' }], undefined)): Exchange {
  storedCall.takeLast(Buffer.from(JSON.stringify(response)))
  return {
    requestId: 'req_1',
    createdMs: 1,
    attempts: [{ channelId: 'p#1' }],
    ...newCallParts(),
    storage: { storedCall },
    lifetime: { stop: new Stop() },
    permit: { caller: { accountId: 1, keyId: 2 } },
    attempt: { candidate: { provider: { id: 'p', can: {} }, model: { id: 'm' } }, translation: {} },
  } as unknown as Exchange
}

interface StorageParts {
  readonly settle?: () => Promise<void>
  readonly put?: () => Promise<'kept' | 'too_large'>
}

function settlerWith({ settle = async () => {}, put = async () => 'kept' }: StorageParts) {
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

const isSettled = (promise: Promise<void>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<boolean>(resolve => setTimeout(resolve, 20, false))])

test('the end of an answer waits until the response is stored and the call is settled', async () => {
  const never = new Promise<never>(() => {})
  expect(await isSettled(settlerWith({ put: () => never }).run(exchangeOf(), completed))).toBe(false)
  expect(await isSettled(settlerWith({ settle: () => never }).run(exchangeOf(), completed))).toBe(false)
  const { run, rows } = settlerWith({})
  await run(exchangeOf(), completed)
  expect(callerResponse(rows.get('resp_1')!)).toEqual(response)
})

test('a response whose call cannot be settled is not answered and not stored', async () => {
  const { run, rows } = settlerWith({ settle: () => Promise.reject(new Error('the disk')) })
  await expect(run(exchangeOf(), completed)).rejects.toThrow('the disk')
  expect(rows.size).toBe(0)
})

test('a background response whose call cannot be settled has failed, without its answer', async () => {
  const call = new StoredCall([{ type: 'message' }], undefined)
  call.queuedResponse = { id: 'resp_1', status: 'queued', output: [] }
  const { run, rows } = settlerWith({ settle: () => Promise.reject(new Error('the disk')) })
  await expect(run(exchangeOf(call), completed)).rejects.toThrow('the disk')
  expect(callerResponse(rows.get('resp_1')!)).toMatchObject({ id: 'resp_1', status: 'failed', output: [] })
  expect(JSON.stringify(rows.get('resp_1'))).not.toContain('msg_1')
  expect(call.isUnpaid).toBe(true)
})

test.each([
  ['is too large to be stored', async () => 'too_large' as const],
  ['cannot be written', () => Promise.reject(new Error('the disk'))],
])('a response that %s is still answered, and marked as not stored', async (_name, put) => {
  const exchange = exchangeOf()
  await settlerWith({ put }).run(exchange, completed)
  expect(exchange.storage.notStored).toBe(true)
})

test('a call is settled once, with its first ending', async () => {
  let settles = 0
  const exchange = exchangeOf()
  const { run, rows } = settlerWith({ settle: async () => void settles++ })
  await Promise.all([run(exchange, { outcome: 'client_left', status: 499 }), run(exchange, completed)])
  expect([settles, rows.size]).toEqual([1, 0])
})

test('a background response gets the status of its ending', async () => {
  const storedCall = new StoredCall([], undefined)
  storedCall.queuedResponse = { id: 'resp_1', status: 'queued', output: [] }
  const { run, rows } = settlerWith({})
  await run(exchangeOf(storedCall), { outcome: 'upstream_failed', status: 502, error: 'upstream_unusable' })
  expect(callerResponse(rows.get('resp_1')!)).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
})
