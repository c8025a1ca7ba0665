// The neighbours of a name that no model has, and that looking for them is little work.

import { expect, test } from 'bun:test'
import { bounds } from '../base/bounds.ts'
import { editDistance } from '../base/text/nearest-name.ts'
import { buildFindNearest } from './nearest-models.ts'

const word = (number: number): string => number.toString(36).replaceAll(/\d/g, digit => 'ghijklmnop'[Number(digit)]!)

/** Many models whose names are alike, and many that are not. */
const models = Array.from({ length: 20_000 }, (_, at) => {
  const bareName = at % 2 === 0 ? `gpt-${word(at)}` : `${word(at * 7_919)}-${at}`
  return { name: `relay/${bareName}`, bareName }
})

function counted(suggested = models): {
  readonly compared: () => number
  readonly find: ReturnType<typeof buildFindNearest>
} {
  let compared = 0
  const find = buildFindNearest(suggested, (one, other, max) => {
    compared++
    return editDistance(one, other, max)
  })
  return { compared: () => compared, find }
}

test.each(['gpt-zzzz', 'gpt-4', 'relay/gpt-qq', 'a'.repeat(80), `gpt${'-a'.repeat(38)}`, '-', 'relay/'])(
  '%s is compared with few names, and once',
  name => {
    const { compared, find } = counted()
    const found = find(name, 5)
    expect(compared()).toBeLessThanOrEqual(bounds.nearestNamesComparedMax)
    const before = compared()
    expect(find(name, 5)).toEqual(found)
    expect(compared()).toBe(before)
  },
)

test('names that cannot be near are not compared at all', () => {
  const { compared, find } = counted()
  expect(find('QQQQQQQQQQQQQQQQ'.repeat(3), 5)).toEqual([])
  expect(find('x'.repeat(500), 5)).toEqual([])
  expect(compared()).toBe(0)
})

test('the names that are kept are few', () => {
  const { compared, find } = counted([{ name: 'relay/gpt-9999', bareName: 'gpt-9999' }])
  for (let at = 0; at <= bounds.nearestNamesKeptMax; at++) find(`gpt-${at}`, 1)
  const before = compared()
  find('gpt-0', 1) // forgotten by now
  expect(compared()).toBeGreaterThan(before)
})

test('the nearest of many names is found', () => {
  const { find } = counted()
  expect(find(`${models[4_000]!.bareName}q`, 5)).toContain(models[4_000]!.bareName)
  expect(find(models[4_001]!.name.replace('relay', 'rely'), 1)).toEqual([models[4_001]!.name])
})

test('the edit distance ends early only where it is too large', () => {
  const letters = ['a', 'b', 'c']
  const words = ['', ...letters, ...letters.flatMap(one => letters.map(other => one + other))]
  const all = words.flatMap(one => words.map(other => one + other))
  const wrong = all.flatMap(one =>
    all.filter(other => {
      const exact = editDistance(one, other, 9)
      return [0, 1, 2].some(max => Math.min(editDistance(one, other, max), max + 1) !== Math.min(exact, max + 1))
    }),
  )
  expect(wrong).toEqual([])
})
