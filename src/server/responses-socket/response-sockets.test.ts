// The bounds on WebSockets: their number, the bytes of their messages, and which of them close when memory is short.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { BodyBudget } from '../../http/server/body-budget.ts'
import type { ServerSocket, WebSocketOwner } from '../../http/server/web-socket.ts'
import type { Caller } from '../../pipeline/exchange.ts'
import type { ResponseSocketsParts } from './response-sockets.ts'
import { ResponseSockets } from './response-sockets.ts'

const GIB = 1024 ** 3
const opening = { path: '/v1/responses', headers: {}, address: '127.0.0.1', query: () => null }

function openSockets(memoryBytesMax: number) {
  const deadlines = new Deadlines(() => 0)
  const gate = { measure() {} }
  const sockets = new ResponseSockets({
    deadlines,
    gate,
    memoryBytesMax,
    socketMs: 1,
  } as unknown as ResponseSocketsParts)
  const closed: number[] = []
  const open = (accountId: number, keyId = accountId): void => {
    sockets.open(opening, { accountId, keyId } as Caller, (owner: WebSocketOwner) => {
      const close = (): void => {
        closed.push(accountId)
        owner.onClose()
      }
      owner.onOpen({ close, getBufferedAmount: () => 0 } as unknown as ServerSocket)
      return true
    })
  }
  const fill = (openNext: (at: number) => void): number => {
    const before = sockets.size
    try {
      for (let at = 0; ; at++) openNext(at)
    } catch (fault) {
      expect((fault as Refusal).code).toBe('concurrency_exceeded')
    }
    return sockets.size - before
  }
  return { sockets, open, fill, closed }
}

describe('the number of WebSockets is bounded', () => {
  test('of all accounts', () => {
    const { open, fill } = openSockets(64 * GIB)
    expect(fill(at => open(at))).toBe(bounds.socketsMax)
  })

  test.each([
    [GIB / 8, 8],
    [GIB, 16],
    [8 * GIB, 128],
    [512 * GIB, bounds.socketsOfAccountMax],
  ])('of one account, by the memory: %d bytes', (memory, count) => {
    const { open, fill } = openSockets(memory)
    expect(fill(at => open(1, at))).toBe(count)
    expect(() => open(2)).not.toThrow()
  })

  test('of one key', () => {
    const { open, fill } = openSockets(64 * GIB)
    expect(fill(() => open(1))).toBe(bounds.socketsOfKeyMax)
    expect(() => open(1, 2)).not.toThrow()
  })
})

test('when memory is short, the account with the most connections loses them first', () => {
  const { sockets, open, closed } = openSockets(GIB)
  for (const account of [1, 2, 2, 2, 3, 2]) open(account)
  sockets.freeMemory()
  expect(closed).toEqual([2, 2, 2, 2])
  sockets.freeMemory()
  expect(closed).toEqual([2, 2, 2, 2, 1])
  sockets.freeMemory()
  expect(sockets.size).toBe(0)
})

test('often while memory is short, idle connections of accounts that have many close', () => {
  const { sockets, open, closed } = openSockets(GIB)
  const many = bounds.socketsSparedMax + 1
  for (let at = 0; at < many; at++) for (const account of [1, 2]) open(account, at)
  for (let at = 0; at < bounds.socketsSparedMax; at++) open(3, at)
  for (let round = 0; round < 5; round++) sockets.shed()
  expect([closed.filter(account => account !== 3).length, closed.includes(3)]).toEqual([2 * many, false])
  expect(sockets.size).toBe(bounds.socketsSparedMax)
})

test('the key of an idle connection is checked until it has ended, and not longer', async () => {
  let nowMs = 0
  const deadlines = new Deadlines(() => nowMs)
  const faults = [undefined, new Refusal('storage_away', 'a lookup'), undefined, new Refusal('key_invalid', 'revoked')]
  let checks = 0
  const authenticate = async (): Promise<void> => {
    const fault = faults[checks++]
    if (fault !== undefined) throw fault
  }
  const parts = { deadlines, authenticate, gate: { measure() {} }, memoryBytesMax: GIB, socketMs: 1e9 }
  const sockets = new ResponseSockets(parts as unknown as ResponseSocketsParts)
  const caller = { accountId: 1, keyId: 1 } as Caller
  const owner = sockets.open(opening, caller, opened => opened)!
  owner.onOpen({ close: () => owner.onClose(), getBufferedAmount: () => 0 } as unknown as ServerSocket)
  for (let round = 1; round <= faults.length; round++) {
    expect([checks, sockets.size]).toEqual([round - 1, 1])
    nowMs += bounds.socketKeyCheckMs
    deadlines.fireDue()
    await new Promise(resolve => setImmediate(resolve))
  }
  expect([checks, sockets.size, deadlines.size]).toEqual([faults.length, 0, 0])
})

describe('a message', () => {
  const MIB = 1024 * 1024
  const limits = { ownBodiesMax: 8, ownBytesMax: 4 * MIB, bodiesMax: 8, bytesMax: 4 * MIB }

  /** A connection, and the messages that reach the thread for large ones. */
  function openSocket(refusal?: Refusal) {
    const bodyBudget = new BodyBudget({ anonymous: limits, person: limits, caller: limits })
    const parsed: number[] = []
    const largeJson = {
      read(body: Buffer) {
        parsed.push(body.length)
        return new Promise<Buffer>(() => {}) // does not end
      },
    }
    const caller = { accountId: 1, keyId: 1 } as Caller
    const gate = { measure() {}, refuseUnlessAdmissible: () => undefined }
    const deadlines = new Deadlines(() => 0)
    const checks = { gate, authenticate: async () => caller, refuseUnread: () => refusal }
    const refused = Promise.withResolvers<void>()
    const runCall = async (): Promise<Response> => {
      refused.resolve()
      return Response.json({ error: {} }, { status: 429 })
    }
    const parts = { ...checks, deadlines, bodyBudget, largeJson, runCall, drain: { isClosed: false }, mintId: () => 1 }
    const sockets = new ResponseSockets({
      ...parts,
      memoryBytesMax: GIB,
      socketMs: 1,
    } as unknown as ResponseSocketsParts)
    const socket = { send() {}, getBufferedAmount: () => 0 } as unknown as ServerSocket
    const owner = sockets.open(opening, caller, opened => opened)!
    owner.onOpen(socket)
    return { owner, bodyBudget, parsed, refused: refused.promise }
  }

  test('counts in the budget for bodies as soon as it arrives', () => {
    const { owner, bodyBudget } = openSocket()
    for (let at = 1; at <= 3; at++) {
      owner.onMessage('x'.repeat(MIB))
      expect(bodyBudget.countsOf('caller')).toEqual({ bodies: at, bytes: at * MIB })
    }
    for (let at = 0; at < 20; at++) owner.onMessage('ü'.repeat(MIB))
    expect(bodyBudget.countsOf('caller').bytes).toBeLessThanOrEqual(4 * MIB)
    owner.onClose()
  })

  test('of a key that has nothing left is refused before it is parsed', async () => {
    const { owner, bodyBudget, parsed, refused } = openSocket(new Refusal('qpm_exceeded', 'key 1'))
    owner.onMessage(`{"type":"response.create","input":"${'x'.repeat(MIB)}"}`)
    await refused
    expect(parsed).toEqual([])
    expect(bodyBudget.countsOf('caller')).toEqual({ bodies: 0, bytes: 0 })
    owner.onClose()
  })
})
