// Tests that control characters in printed text, which may come from other people, are shown as text and never act on
// the terminal.

import { expect, test } from 'bun:test'
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
