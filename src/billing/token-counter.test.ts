// Tests the thread that counts tokens: correct, bounded for any input, and stopped when idle.

import { afterAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { countTokens as countOlder } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { HUNG_MS, until } from '../../test/support/gateway.ts'
import { bounds } from '../base/bounds.ts'
import { Thread } from '../base/threads/thread.ts'
import type { TokenCounterOptions } from './token-counter.ts'
import { TokenCounter, tokensAtMost } from './token-counter.ts'
import type { TokenCounterMethods } from './token-counter-thread.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const faults: string[] = []
const opened: TokenCounter[] = []

/** Opens a counter. Its default timeouts are long enough for a busy machine. */
function open(options: Partial<TokenCounterOptions> = {}): TokenCounter {
  const counter = new TokenCounter(detail => faults.push(detail), { startMs: HUNG_MS, countMs: HUNG_MS, ...options })
  opened.push(counter)
  return counter
}

afterAll(() => {
  for (const counter of opened) counter.close()
})

describe('counts', () => {
  const counter = open()

  test('a known text', async () => {
    expect(await counter.count(bytes('Hello, world!'))).toMatchObject({ tokens: 4, uncountedBytes: 0 })
    expect(await counter.count(bytes(''))).toMatchObject({ tokens: 0, uncountedBytes: 0 })
  })

  test('the names of special tokens as ordinary text', async () => {
    const count = await counter.count(bytes('<|endoftext|>'))
    expect(count!.tokens).toBeGreaterThan(1)
  })

  test('long texts in pieces, at hardly more than the whole, without splitting a character', async () => {
    const text = 'The river rose in the night, and by the morning it had come to the mill. '.repeat(1_000)
    const { tokens } = (await counter.count(bytes(text)))!
    expect(tokens / countTokens(text)).toBeWithin(1, 1.03)
    const characters = await counter.count(bytes('水'.repeat(1_000)))
    expect(characters!.tokens).toBeLessThanOrEqual(1_000)
  })

  const samples = {
    English: 'Hello, my name is a river. I come from the hills, and it is nice to meet you! ',
    Russian: 'Привет, меня зовут река. Я — с гор, приятно познакомиться! ',
    Arabic: 'مرحبًا، اسمي جي بي تي. أنا نوع جديد من نموذج اللغة، سررت بلقائك! ',
    Chinese: '你好，我的名字是河。我是一种新型的语言模型，很高兴见到你！',
    Hindi: 'हेलो, मेरा नाम जीपीटी है। मैं एक नए प्रकार का भाषा मॉडल हूँ। आपसे मिलकर अच्छा लगा! ',
    Gujarati: 'હેલો, મારું નામ છે. હું એક નવા પ્રકારનું ભાષા મોડલ છું. તમને મળીને સારું લાગ્યું! ',
    Telugu: 'నమస్కారము, నా పేరు. నేను ఒక్క కొత్త రకమైన భాషా మోడల్ ని. మిమ్మల్ని కలిసినందుకు సంతోషం! ',
  }
  test.each(Object.entries(samples))(
    '%s for an older vocabulary, and for less than its bytes',
    async (_name, sample) => {
      const text = sample.repeat(50)
      const most = tokensAtMost((await counter.count(bytes(text)))!)
      expect(most).toBeGreaterThanOrEqual(countOlder(text))
      expect(most).toBeLessThan(Buffer.byteLength(text))
    },
  )

  test('several texts at once, each separately', async () => {
    const texts = ['one', 'one two', 'one two three']
    const counts = await Promise.all(texts.map(text => counter.count(bytes(text))))
    expect(counts.map(count => count!.tokens)).toEqual([1, 2, 3])
  })

  test('the text as it was, even if it is changed later', async () => {
    const text = Buffer.from('one two three')
    const counting = counter.count(text)
    text.fill('x')
    expect((await counting)!.tokens).toBe(3)
  })

  test('one endless word', async () => {
    const count = await counter.count(Buffer.alloc(bounds.tokenCountBytesMax, 'a'))
    expect(count).toMatchObject({ uncountedBytes: 0 })
    expect(count!.tokens).toBeLessThan(bounds.tokenCountBytesMax / 4)
  })

  test('no more bytes at once than the bound', async () => {
    const first = counter.count(Buffer.alloc(bounds.tokenCountBytesMax - 2, 'a'))
    expect(await counter.count(bytes('abc'))).toBeUndefined()
    expect((await first)!.uncountedBytes).toBe(0)
    expect((await counter.count(bytes('abc')))!.tokens).toBe(1)
    for (const text of [Buffer.alloc(33_554_432, 'a'), Buffer.from(randomBytes(25_165_824).toString('base64'))]) {
      expect(await counter.count(text)).toBeUndefined()
    }
  })
})

describe('the time of a count is limited:', () => {
  // The thread and the counter end at times that are half a second apart. A pause of the machine may be longer, so each
  // is tested without the other.
  test('bytes that the thread does not count in time are reported', async () => {
    const thread = new Thread<TokenCounterMethods>({ url: new URL('./token-counter-thread.ts', import.meta.url) })
    await thread.run('count', { text: Buffer.from('abc'), dueMs: Date.now() + HUNG_MS })
    const text = Buffer.from(randomBytes(4_500_000).toString('base64'))
    const count = await thread.run('count', { text, dueMs: Date.now() + 300 })
    expect(count.uncountedBytes).toBeGreaterThan(0)
    expect(count.tokens + count.uncountedBytes).toBeLessThanOrEqual(text.length)
    thread.stop()
  })

  test('the counter tells the thread when the time is over, and has more time only while the thread starts', async () => {
    const answer = '{ tokens: e.data[2].dueMs, extraTokens: 0, uncountedBytes: 0 }'
    const thread = script(`onmessage = () => (onmessage = e => postMessage([e.data[0], ${answer}]))`)
    const counter = open({ startMs: 300_000, countMs: 200_000, thread })
    for (const ms of [500_000, 200_000]) {
      const before = Date.now()
      const dueMs = (await counter.count(bytes('abc')))!.tokens
      expect(dueMs).toBeWithin(before + ms, Date.now() + ms + 1)
    }
  })

  test('a thread that does not answer is not waited for', async () => {
    const counter = open({ startMs: 0, countMs: 0, thread: script('onmessage = () => {}') })
    expect(await counter.count(bytes('abc'))).toBeUndefined()
  })
})

const script = (text: string): string => URL.createObjectURL(new Blob([text], { type: 'application/javascript' }))

describe('the thread', () => {
  test('starts on first use, and stops when idle', async () => {
    const counter = open({ idleMs: 50 })
    expect(counter.running).toBe(false)
    await counter.count(bytes('abc'))
    expect(counter.running).toBe(true)
    await until(() => !counter.running, 'the thread is gone')
    expect((await counter.count(bytes('abc')))!.tokens).toBe(1)
  })

  test('resolves waiting counts when it is closed', async () => {
    const counter = open()
    const waiting = counter.count(bytes('abc'))
    counter.close()
    expect(await waiting).toBeUndefined()
  })

  const errors = {
    dies: "onmessage = () => { throw new Error('out of vocabulary') }",
    'answers with an error': "onmessage = () => (onmessage = e => postMessage([e.data[0], null, 'out of vocabulary']))",
  }
  test.each(Object.entries(errors))(
    'that %s resolves waiting counts, is reported, and is started again',
    async (_name, text) => {
      faults.splice(0)
      const counter = open({ thread: script(text) })
      for (let death = 1; death <= 2; death++) {
        expect(await Promise.all([counter.count(bytes('abc')), counter.count(bytes('abc'))])).toEqual([
          undefined,
          undefined,
        ])
        expect(counter.running).toBe(false)
        expect(faults).toHaveLength(death)
        expect(faults.at(-1)).toContain('out of vocabulary')
      }
    },
  )
})
