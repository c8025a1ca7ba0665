// Tests which texts of a request count as more than their bytes.

import { expect, test } from 'bun:test'
import { measureExtraBytes } from './extra-bytes.ts'

const extraBytesOf = (content: unknown): number => {
  const json = { model: 'm', messages: [{ role: 'user', content }] }
  return measureExtraBytes(json, Buffer.byteLength(JSON.stringify(json)))
}
const hex = Buffer.from(Uint8Array.from({ length: 1_500 }, (_, at) => (at * at * 37) >> 3)).toString('hex')

test('prose hardly counts as more than its bytes', () => {
  const prose = 'The heron waits at the mill each morning, and the river is high. '.repeat(40)
  expect(extraBytesOf(prose)).toBeLessThan(prose.length / 50)
})

test('digits, and text in whatever field a model reads, count as more', () => {
  const plain = extraBytesOf(hex)
  expect(plain).toBeGreaterThan(hex.length / 2)
  for (const content of [
    [{ type: 'text', text: hex }],
    [{ type: 'tool_result', content: [{ type: 'text', text: hex }] }],
    [{ type: 'tool_use', name: 'f', input: { rows: [hex] } }],
  ]) {
    expect(extraBytesOf(content)).toBeGreaterThan(plain * 0.9)
  }
})

test('media, and what a provider has encrypted, do not', () => {
  const url = `data:image/png;base64,${hex}`
  for (const part of [
    { type: 'image_url', image_url: { url } },
    { type: 'input_image', image_url: url },
    { type: 'input_audio', input_audio: { data: hex, format: 'wav' } },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: hex } },
    { type: 'thinking', thinking: 'Hm.', signature: hex },
    { type: 'reasoning', encrypted_content: hex, summary: [] },
  ]) {
    expect(extraBytesOf([part])).toBe(0)
    expect(extraBytesOf([part, { type: 'text', text: hex }])).toBeGreaterThan(hex.length / 2)
  }
})
