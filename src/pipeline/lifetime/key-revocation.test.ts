// Which active calls end when another process has changed keys.

import { expect, test } from 'bun:test'
import { Stop } from '../../base/stop.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { ActiveCalls } from './active-calls.ts'
import { KeyRevocations } from './key-revocation.ts'

const works = { revoked: false, disabled: false, expiresMs: null, untilMs: null }

function setUp() {
  const activeCalls = new ActiveCalls(() => 0)
  const nodes: ReturnType<ActiveCalls['add']>[] = []
  const call = (keyId: number, text: string): Exchange => {
    const caller = { keyId, version: 1, digest: Buffer.from(text), expiresMs: null, untilMs: null }
    const lifetime = { stop: new Stop<StopReason>() }
    const exchange = { startedMs: 0, caller, attempt: {}, lifetime } as unknown as Exchange
    nodes.push(activeCalls.add(exchange))
    return exchange
  }
  const disconnects = { onKeyEnd: ({ lifetime }: Exchange, reason: StopReason) => lifetime.stop.stop(reason) }
  const keyEnds = new KeyRevocations({ activeCalls, disconnects, graceMs: 0, dateMs: () => 1_000 })
  /** Without calls, the timer of active calls ends. */
  const end = (): void => nodes.forEach(node => activeCalls.remove(node))
  return { call, keyEnds, end }
}

/** All keys have changed. */
const versionsOf = (ids: readonly number[]) => new Map(ids.map(id => [id, 2]))

test('the calls of keys that were revoked, disabled or have expired end, and no others', async () => {
  const { call, keyEnds, end } = setUp()
  const states: Readonly<Record<string, typeof works | object>> = {
    revoked: { revoked: true },
    disabled: { disabled: true },
    expired: { expiresMs: 1_000 },
    replaced: { untilMs: 999 },
    replacing: { untilMs: 1_001 },
    working: {},
  }
  const calls = Object.keys(states).map((name, keyId) => call(keyId, name))
  // The same key with its new text.
  const renewed = call(3, 'working')
  await keyEnds.checkAgain({
    versionsOf,
    findKey: digest => ({ ...works, ...states[digest.toString()] }),
    hasNewText: () => false,
  })
  await new Promise(resolve => setTimeout(resolve, 0)) // after the timers of the grace of 0 ms
  const isEnded = [...calls, renewed].map(({ lifetime }) => lifetime.stop.reason?.outcome === 'revoked')
  expect(isEnded).toEqual([true, true, true, true, false, false, false])
  end()
})

test('a call whose digest is not found ends if its key has a new text, and not if the pepper was rotated', async () => {
  const { call, keyEnds, end } = setUp()
  const calls = [call(1, 'x'), call(2, 'y')]
  await keyEnds.checkAgain({ versionsOf, findKey: () => undefined, hasNewText: keyId => keyId === 1 })
  expect(calls.map(({ lifetime }) => lifetime.stop.reason?.outcome)).toEqual(['revoked', undefined])
  end()
})

test('of many active keys, only those with another version are read', async () => {
  const { call, keyEnds, end } = setUp()
  const calls = Array.from({ length: 100 }, (_, keyId) => call(keyId, String(keyId)))
  const [asked, read] = [[] as (readonly number[])[], [] as string[]]
  await keyEnds.checkAgain({
    versionsOf(ids) {
      asked.push(ids)
      return new Map(ids.map(id => [id, id === 7 ? 2 : 1]))
    },
    findKey(digest) {
      read.push(digest.toString())
      return { ...works, untilMs: 1 }
    },
    hasNewText: () => false,
  })
  expect([asked, read]).toEqual([[calls.map((_, keyId) => keyId)], ['7']])
  expect(calls.flatMap(({ lifetime }, at) => (lifetime.stop.reason === undefined ? [] : [at]))).toEqual([7])
  end()
})
