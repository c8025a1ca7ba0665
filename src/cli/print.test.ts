// Tests that control characters in printed text, which may come from other people, are shown as text and never act on
// the terminal, and that tables fit the terminal.

import { describe, expect, test } from 'bun:test'
import { fieldLines, harmlessLines, jsonText, tableLines } from './print.ts'

const withControls = 'a\u001b[2J\u009b31m\r\nkind  operator\u007f\u202eb'
const shown = 'a\\u001b[2J\\u009b31m\\u000d\\u000akind  operator\\u007f\\u202eb'

test('a field and a cell stay on one line, and escape sequences are shown as text', () => {
  expect(fieldLines({ name: withControls })).toEqual([`name     ${shown}`])
  expect(fieldLines({ tags: { [withControls]: 1 } }).join('\n')).not.toMatch(/[^\P{Cc}\n]/u)
  expect(tableLines([{ name: withControls }])[1]).toBe(shown)
})

test('a list of strings is joined with commas, and a missing value is a dash', () => {
  expect(fieldLines({ allow: ['a/*', withControls], deny: null })).toEqual([`allow    a/*,${shown}`, 'deny     -'])
  expect(tableLines([{ tags: ['eu', 'fast'] }, { tags: null }, { tags: [] }]).slice(1)).toEqual(['eu,fast', '-', '-'])
})

test('JSON keeps its meaning, and escape sequences are shown as text', () => {
  const text = jsonText({ name: withControls })
  expect(JSON.parse(text)).toEqual({ name: withControls })
  expect(text).not.toMatch(/[^\P{Cc}\n]|\u202e/u)
})

test('a text of several lines keeps its lines, and escape sequences are shown as text', () => {
  expect(harmlessLines('{\n\t"x": "é🌊"}\u001b[2J')).toBe('{\n\t"x": "é🌊"}\\u001b[2J')
})

describe('a table in a terminal', () => {
  const row = {
    id: 'openai#a-rather-long-channel-id',
    account: 'acc_06dshw8z801',
    cost: '12345.678901234',
    made: '2026-11-16T16:45:36.398Z',
    name: 'n'.repeat(20),
    note: 'a text that is long, and 水 that is wide '.repeat(3).trim(),
  }
  const tableOf = (width: number): readonly string[] => tableLines([row, { ...row, note: null, name: 'n' }], width)
  const wide = tableOf(Number.POSITIVE_INFINITY)

  test('fits, and its widest column of text is shortened first', () => {
    for (const width of [200, 150, 140]) {
      const lines = tableOf(width)
      expect(Math.max(...lines.map(line => Bun.stringWidth(line)))).toBeLessThanOrEqual(width)
      expect(lines[1]).toContain(row.name)
      expect(lines[1]).toMatch(/a text.*…$/)
    }
    expect(tableOf(115)[1]).toMatch(/ {2}n{9}… {2}a text th…$/)
  })

  test('keeps ids, amounts and times whole, even if it does not fit', () => {
    for (const width of [80, 40, 1]) {
      const lines = tableOf(width)
      for (const exact of [row.id, row.account, row.cost, row.made]) expect(lines[1]).toContain(exact)
    }
  })

  test('is not shortened if it fits', () => {
    expect(wide[1]).toEndWith(row.note)
    expect(tableOf(Math.max(...wide.map(line => Bun.stringWidth(line))))).toEqual(wide)
  })
})
