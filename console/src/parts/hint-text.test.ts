import { expect, test } from 'bun:test'
import { errors } from '../words/zh/errors.ts'
import { hintText } from './hint-text.ts'

/** As the words of the console, which need a browser. */
const find = (key: string, values: Readonly<Record<string, string | number>> = {}): string | undefined =>
  errors[key]?.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place))
const body = { part: 'body' }

test('a hint has its values, the whole request a name, and a role its own', () => {
  expect(hintText(find, { code: 'at_least', values: { ...body, name: 'qpm', min: '1' } })).toBe(
    '“qpm”无效，不得小于 1。',
  )
  expect(hintText(find, { code: 'type', values: { ...body, name: '', type: 'object' } })).toBe(
    '“请求”无效，类型应为 object。',
  )
  expect(hintText(find, { code: 'only_for', values: { role: 'admin', name: 'tier' } })).toBe(
    '只有管理员可以设置“tier”。',
  )
})

test('a hint that is not known has no text', () => {
  expect(hintText(find, { code: 'of_a_later_version', values: {} })).toBeUndefined()
  expect(hintText(find, null)).toBeUndefined()
})
