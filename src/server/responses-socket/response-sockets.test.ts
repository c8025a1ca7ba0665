// The bounds on the number of WebSockets, and which of them close when memory is short.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import type { Refusal } from '../../base/errors.ts'
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
