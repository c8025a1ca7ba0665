import { expect, test } from 'bun:test'
import { write } from '../words/zh/hints.ts'

const body = { part: 'body' }

test('a hint has its values, the whole request a name, and a role its own', () => {
  expect(write({ code: 'at_least', values: { ...body, name: 'qpm', min: '1' } })).toBe('“qpm”无效，不得小于 1。')
  expect(write({ code: 'type', values: { ...body, name: '', type: 'object' } })).toBe('“请求”无效，类型应为 object。')
  expect(write({ code: 'only_for', values: { role: 'admin', name: 'tier' } })).toBe('只有管理员可以设置“tier”。')
})

test('a value may be a hint, a number, or a list of words', () => {
  const must = { code: 'must_be_id', values: { example: 'acc_1' } }
  expect(write({ code: 'invalid', values: { ...body, name: 'account', must } })).toBe(
    '“account”无效：须为编号，例如 acc_1。',
  )
  expect(write({ code: 'keys_max', values: { max: 10_000 } })).toBe(
    '一个账户最多可有 10,000 个密钥（包括已吊销的）。管理员可以创建更多。',
  )
  expect(write({ code: 'call_unread', values: { kind: 'images', reads: 'text, audio' } })).toBe(
    '此模型不支持图片，只支持文本、音频。',
  )
})

test('a hint that is not known has no text', () => {
  expect(write({ code: 'of_a_later_version', values: {} })).toBeUndefined()
})
