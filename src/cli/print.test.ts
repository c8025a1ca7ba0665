// Printed text may come from other people. Control characters in it must be shown and never act on the terminal.

import { expect, test } from 'bun:test'
import { fieldLines, harmlessLines, jsonText, tableLines } from './print.ts'

const evil = 'a\u001b[2J\u009b31m\r\nkind  operator\u007f\u202eb'
const shown = 'a\\u001b[2J\\u009b31m\\u000d\\u000akind  operator\\u007f\\u202eb'

test('a field and a cell stay on one line, and escape sequences are shown as text', () => {
  expect(fieldLines({ name: evil })).toEqual([`name     ${shown}`])
  expect(fieldLines({ tags: { [evil]: 1 } }).join('\n')).not.toMatch(/[^\P{Cc}\n]/u)
  expect(tableLines([{ name: evil }])[1]).toBe(shown)
})

test('a list of strings is joined with commas, and a missing value is a dash', () => {
  expect(fieldLines({ allow: ['a/*', evil], deny: null })).toEqual([`allow    a/*,${shown}`, 'deny     -'])
  expect(tableLines([{ tags: ['eu', 'fast'] }, { tags: null }, { tags: [] }]).slice(1)).toEqual(['eu,fast', '-', '-'])
})

test('JSON keeps its meaning, and escape sequences are shown as text', () => {
  const text = jsonText({ name: evil })
  expect(JSON.parse(text)).toEqual({ name: evil })
  expect(text).not.toMatch(/[^\P{Cc}\n]|\u202e/u)
})

test('a text of several lines keeps its lines', () => {
  expect(harmlessLines('{\n\t"x": "é🌊"}\u001b[2J')).toBe('{\n\t"x": "é🌊"}\\u001b[2J')
})
