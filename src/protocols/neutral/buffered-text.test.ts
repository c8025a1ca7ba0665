import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { BufferedText } from './buffered-text.ts'

test('the text is that of all added pieces', () => {
  for (const count of [0, 1, 63, 64, 65, 129, 5_000]) {
    const text = new BufferedText()
    const pieces = Array.from({ length: count }, (_, index) => ` ü${index}`)
    for (const piece of pieces) text.add(piece)
    expect(text.text()).toBe(pieces.join(''))
    expect(text.length).toBe(pieces.join('').length)
    text.add('!')
    expect(text.text()).toBe(`${pieces.join('')}!`)
  }
})

test('many pieces do not stay separate strings', () => {
  Bun.gc(true)
  const before = heapStats().objectTypeCounts.string ?? 0
  const texts = Array.from({ length: 10 }, () => {
    const text = new BufferedText()
    for (let index = 0; index < 10_000; index++) text.add(` word${index}`)
    return text
  })
  Bun.gc(true)
  expect((heapStats().objectTypeCounts.string ?? 0) - before).toBeLessThan(20_000)
  expect(texts[9]!.text().endsWith(' word9999')).toBe(true)
})
