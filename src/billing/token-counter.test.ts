// The thread that counts tokens: right, bounded whatever it is fed, and gone when nobody needs it.

import { afterEach, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { bounds } from '../base/bounds.ts'
import { until } from '../../test/support/gateway.ts'
import { TokenCounter } from './token-counter.ts'

let counter: TokenCounter
const open = (times = { countMs: 20_000, idleMs: 60_000 }): TokenCounter => (counter = new TokenCounter(times))
const bytes = (text: string): Uint8Array => Buffer.from(text)

afterEach(() => counter.close())

describe('counts', () => {
  test('a known text', async () => {
    expect(await open().count(bytes('Hello, world!'))).toMatchObject({ tokens: 4, uncountedBytes: 0 })
    expect(await counter.count(bytes(''))).toMatchObject({ tokens: 0, uncountedBytes: 0 })
  })

  test('the names of special tokens as the text that they are', async () => {
    const count = await open().count(bytes('<|endoftext|>'))
    expect(count!.tokens).toBeGreaterThan(1)
  })

  test('long texts in pieces, at hardly more than the whole, and no character in two', async () => {
    const text = 'The river rose in the night, and by the morning it had come to the mill. '.repeat(1_000)
    const { tokens } = (await open().count(bytes(text)))!
    expect(tokens / countTokens(text)).toBeWithin(1, 1.03)
    const characters = await counter.count(bytes('水'.repeat(1_000)))
    expect(characters!.tokens).toBeLessThanOrEqual(1_000)
  })

  test('several texts at once, each for its own', async () => {
    const texts = ['one', 'one two', 'one two three']
    open()
    const counts = await Promise.all(texts.map(text => counter.count(bytes(text))))
    expect(counts.map(count => count!.tokens)).toEqual([1, 2, 3])
  })

  test('the text as it was, whatever becomes of it later', async () => {
    const text = Buffer.from('one two three')
    const counting = open().count(text)
    text.fill('x')
    expect((await counting)!.tokens).toBe(3)
  })
})

describe('is bounded', () => {
  test('in time: what it cannot count it leaves, byte by byte', async () => {
    const text = Buffer.from(randomBytes(4_500_000).toString('base64'))
    const sinceMs = performance.now()
    const count = await open({ countMs: 1_200, idleMs: 60_000 }).count(text)
    expect(performance.now() - sinceMs).toBeLessThan(3_000)
    expect(count!.uncountedBytes).toBeGreaterThan(0)
    expect(count!.tokens + count!.uncountedBytes).toBeLessThanOrEqual(text.length)
  })

  test('by one endless word', async () => {
    const count = await open().count(Buffer.alloc(bounds.tokenCountBytesMax, 'a'))
    expect(count).toMatchObject({ uncountedBytes: 0 })
    expect(count!.tokens).toBeLessThan(bounds.tokenCountBytesMax / 4)
  })

  test('in memory: what would be too much is refused at once', async () => {
    expect(await open().count(Buffer.alloc(32 * 1024 * 1024, 'a'))).toBeUndefined()
    expect(counter.running).toBe(false)
    const first = counter.count(Buffer.alloc(bounds.tokenCountBytesMax - 2, 'a'))
    expect(await counter.count(bytes('abc'))).toBeUndefined()
    expect((await first)!.uncountedBytes).toBe(0)
    expect((await counter.count(bytes('abc')))!.tokens).toBe(1)
  })

  test('in patience: a thread that does not answer is not waited for', async () => {
    const sinceMs = performance.now()
    // It cannot even start in no time.
    expect((await open({ countMs: 0, idleMs: 60_000 }).count(bytes('abc')))?.tokens ?? 0).toBe(0)
    expect(performance.now() - sinceMs).toBeLessThan(1_000)
  })
})

describe('the thread', () => {
  test('starts at the first need, and goes when idle', async () => {
    open({ countMs: 20_000, idleMs: 50 })
    expect(counter.running).toBe(false)
    await counter.count(bytes('abc'))
    expect(counter.running).toBe(true)
    await until(() => !counter.running, 'the thread is gone')
    expect((await counter.count(bytes('abc')))!.tokens).toBe(1)
  })

  test('leaves nobody waiting when it is closed', async () => {
    const waiting = open().count(bytes('abc'))
    counter.close()
    expect(await waiting).toBeUndefined()
  })
})
