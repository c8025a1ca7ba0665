// Compares the estimate of a text with a real tokenizer: at least half and at most twice as many tokens, for a whole
// text and token by token.

import { expect, test } from 'bun:test'
import { decode, encode } from 'gpt-tokenizer/encoding/o200k_base'
import { estimateTextBytes } from './text-bytes.ts'

/** Bytes that are the same in each run, with all values. */
const bytes = Uint8Array.from({ length: 3_000 }, (_, index) => (Math.imul(index + 1, 0x9e3779b1) >>> 13) & 0xff)
const randomText = (from: string): string => Array.from(bytes, byte => from[byte % from.length]).join('')

const texts = {
  prose: 'The river bends where the old mill stood, and the heron waits there every morning for its fish. '.repeat(8),
  german: 'Die Donau ist der zweitlängste Fluss in Europa und fließt durch zehn Länder zum Meer. '.repeat(8),
  code: 'export function within(most: number): Tokens {\n  return Math.min(output, most - drawn)\n}\n\n'.repeat(8),
  json: JSON.stringify(
    Array.from(bytes.slice(0, 90), (id, index) => ({ id, name: `brook ${index}`, isOpen: id > 99 })),
  ),
  digits: randomText('0123456789'),
  numbers: bytes.join(', '),
  decimals: Array.from(bytes, byte => (byte / 7).toFixed(3)).join(' '),
  base64: Buffer.from(bytes).toString('base64'),
  hex: Buffer.from(bytes).toString('hex'),
  shouted: 'THE RIVER BENDS WHERE THE OLD MILL STOOD, AND THE HERON WAITS. '.repeat(8),
  signs: randomText('!@#$%^&*()_+-=[]{}|;:,.<>/?'),
  table: '| a | 12 | 3.5 |\n|---|---:|:--|\n'.repeat(20),
  chinese: '长江是中国最长的河流，全长约六千三百公里，流经十一个省、自治区和直辖市，最后在上海注入东海。'.repeat(8),
  japanese: '東京は日本の首都であり、世界で最も人口の多い都市圏の一つです。春には桜が咲きます。'.repeat(8),
  korean: '서울은 대한민국의 수도이며 한강이 도시를 가로질러 흐른다. 많은 사람들이 이곳에서 살고 일한다. '.repeat(8),
  russian: 'Волга — самая длинная река в Европе. Она течёт через центральную часть России. '.repeat(8),
  arabic: 'النيل هو أطول نهر في أفريقيا ويمتد عبر إحدى عشرة دولة قبل أن يصب في البحر الأبيض المتوسط. '.repeat(8),
  hindi: 'गंगा भारत की सबसे पवित्र नदी है। यह हिमालय से निकलती है और बंगाल की खाड़ी में गिरती है। '.repeat(8),
  emojis: '😀🎉🚀🌍🔥💡🐟🌊🦊🍎🎵🏔👩‍🚀🇩🇪👍🏽'.repeat(8),
  symbols: '∑∫√≤≥≠∞→←∀∃∈⊂∪∩'.repeat(8),
} as const

/** The pieces of a stream, token by token. A character that is split between tokens is in one piece. */
function* piecesOf(text: string): Iterable<string> {
  let tokens: number[] = []
  for (const token of encode(text)) {
    tokens.push(token)
    const piece = decode(tokens)
    if (piece.includes('\ufffd') && tokens.length < 4) continue
    yield piece
    tokens = []
  }
}

test.each(Object.entries(texts))('the estimate is within a factor of two of the real tokens for %s', (_kind, text) => {
  const tokens = encode(text).length
  let streamed = 0
  for (const piece of piecesOf(text)) streamed += estimateTextBytes(piece)
  for (const estimate of [estimateTextBytes(text), streamed, estimateTextBytes(text.repeat(40)) / 40]) {
    expect(estimate / 4).toBeGreaterThan(tokens / 2)
    expect(estimate / 4).toBeLessThan(tokens * 2)
  }
})

test('letters are a quarter of a token each, exactly', () => {
  expect(estimateTextBytes('x'.repeat(41))).toBe(41)
  expect(estimateTextBytes('x'.repeat(1_000_001))).toBe(1_000_001)
})

test('a token has at most three digits, and at most one Chinese character', () => {
  expect(estimateTextBytes('123456') / 4).toBeGreaterThanOrEqual(2)
  expect(estimateTextBytes('江河') / 4).toBe(2)
})

test('a value that is not a string is 0, and the shortest text is above 0', () => {
  expect([undefined, null, 7, {}, ''].map(estimateTextBytes)).toEqual([0, 0, 0, 0, 0])
  expect(estimateTextBytes('a')).toBe(2)
})

test('a long text is sampled in all of its parts', () => {
  const long = 'x'.repeat(100_000) + '江'.repeat(100_000)
  const half = 100_000 + 4 * 100_000
  expect(Math.abs(estimateTextBytes(long) / half - 1)).toBeLessThan(0.1)
})
