// Tests Ark's chat without translation: caps, headers, errors, and reasoning state of other upstreams.

import { describe, expect, test } from 'bun:test'
import { buildErrorReply, Refusal } from '../../base/errors.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import { protocols } from '../protocols.ts'
import { ark } from './dialect.ts'

const messages = [{ role: 'user', content: 'x' }]

const read = (fields: object) => ark.readCall(Buffer.from(JSON.stringify({ model: 'a/b', messages, ...fields })))
const writeFields = (fields: object, cap?: number): Record<string, unknown> => {
  const target = { model: 'm', askUsage: false, capField: 'max_completion_tokens', ...(cap && { cap }) } as const
  return JSON.parse(Buffer.from(ark.writeCall(read(fields), target)).toString()) as Record<string, unknown>
}

describe('a cap', () => {
  test('max_tokens limits the visible output only, unless thinking is disabled', () => {
    expect(read({ max_tokens: 100 }).outputTokensMax).toBeUndefined()
    expect(read({ max_tokens: 100, thinking: { type: 'disabled' } }).outputTokensMax).toBe(100)
    expect(read({ max_completion_tokens: 100 }).outputTokensMax).toBe(100)
  })

  test('a cap of the gateway limits all billed output and replaces max_tokens', () => {
    expect(writeFields({ max_tokens: 100 }, 50)).toMatchObject({ max_tokens: null, max_completion_tokens: 50 })
    expect(writeFields({}, 50)).toMatchObject({ max_completion_tokens: 50 })
    expect(writeFields({ max_completion_tokens: 100 }, 50)).toMatchObject({ max_completion_tokens: 50 })
    expect(writeFields({ max_completion_tokens: 10 }, 50)).toMatchObject({ max_completion_tokens: 10 })
    expect(writeFields({ max_completion_tokens: null, max_tokens: 7 }, 50)).toMatchObject({
      max_tokens: null,
      max_completion_tokens: 50,
    })
    expect(writeFields({ max_tokens: 100, thinking: { type: 'disabled' } }, 50)).toMatchObject({ max_tokens: 50 })
  })
})

describe('packed reasoning state of another upstream', () => {
  const packed = packReasoningState({ form: 'thought', value: 'v', origin: 'o' })
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{ }' } }
  const withToolCall = (fields: object, extra = {}) => [
    ...messages,
    { role: 'assistant', content: null, ...fields, tool_calls: [{ ...call, ...extra }] },
    { role: 'tool', tool_call_id: 'a', content: `not state: ${packed}` },
  ]

  test.each(['ark', 'openai-chat'] as const)('is removed without translation: %s', dialect => {
    const { readCall, writeCall } = protocols[dialect]
    const target = { model: 'm', askUsage: false, capField: 'max_tokens' } as const
    const extra = { extra_content: { google: { thought_signature: packed } } }
    const writeMessages = (list: readonly object[]): string => {
      const body = Buffer.from(`{"model":"a/b","seed":12345678901234567890, "messages":${JSON.stringify(list)}}`)
      return Buffer.from(writeCall(readCall(body), target)).toString()
    }
    expect(writeMessages(withToolCall({ encrypted_content: `${packed}.${packed}` }, extra))).toBe(
      writeMessages(withToolCall({})),
    )
    expect(writeMessages(withToolCall({}))).toContain('12345678901234567890')
    const raw = withToolCall({ encrypted_content: 'raw' }, { extra_content: { google: { thought_signature: 'raw' } } })
    expect(writeMessages(raw)).toContain('"encrypted_content":"raw"')
    expect(writeMessages(raw)).toContain('"thought_signature":"raw"')
  })
})

test('P34: errors have the envelope of Ark, also in a stream', () => {
  const error = ark.writeError(buildErrorReply(new Refusal('qpm_exceeded', 'x'), 'req_1'))
  expect(error.status).toBe(429)
  expect(JSON.parse(error.body)).toMatchObject({ error: { type: 'TooManyRequests', message: expect.any(String) } })
  expect(error.events).toStartWith(`data: ${error.body}\n\n`)
})

test('headers that enable tools are passed on, and credentials are not', () => {
  expect(ark.passedHeaders).toContain('ark-beta-web-search')
  expect(ark.passedHeaders).not.toContain('authorization' as never)
})
