// Tests which errors of upstreams say that the context is too long.

import { expect, test } from 'bun:test'
import { expectCheap } from '../../test/support/cpu.ts'
import { forOtherDialect, isContextOverflow } from './context-overflow.ts'

test.each([
  'prompt is too long: 213462 tokens > 200000 maximum',
  'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens`',
  "This model's maximum context length is 4096 tokens. However, you requested 5048 tokens (3000 in the messages).",
  "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens",
  'Prompt contains 40000 tokens, too large for model with 32768 maximum context length',
  'Your input exceeds the context window of this model. Please adjust your input and try again.',
  'Input tokens exceed the configured limit of 272000 tokens.',
  'The input token count (1300000) exceeds the maximum number of tokens allowed (1048575).',
  'The input token count exceeds the maximum number of tokens allowed 1048576.',
  'Total tokens of image and text exceed max message tokens. Request id: 1',
  'Input is too long for requested model.',
  "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  'Please reduce the length of the messages or completion.',
  'Invalid request: Your request exceeded model token limit: 8192 (requested: 10000)',
  "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
  'invalid params, context window exceeds limit (2013)',
  '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]',
  'Prompt exceeds max length',
  'the request exceeds the available context size, try increasing it',
  'prompt token count of 200001 exceeds the limit of 128000',
])('%s', message => {
  expect(isContextOverflow({ message })).toBe(true)
})

test.each([
  'The upstream gave no reason.',
  'max_tokens is too large: 200000. This model supports at most 16384 completion tokens.',
  "'max_tokens' is too large: 200000. This model's maximum context length is 131072 tokens.",
  'Rate limit reached for requests per minute.',
  `Invalid value: '${'x'.repeat(500)} prompt is too long'`,
])('says something else: %s', message => {
  expect(isContextOverflow({ message })).toBe(false)
})

test.each([{ code: 'context_length_exceeded' }, { type: 'exceed_context_size_error' }])('%p says it', names => {
  expect(isContextOverflow({ message: 'No.', ...names })).toBe(true)
})

test('a caller of another dialect gets the status, the message, and this one fact', () => {
  const other = { status: 400, message: 'No.', type: 't', code: 'c', param: 'p' }
  expect(forOtherDialect(other)).toEqual({ status: 400, message: 'No.' })
  const long = { ...other, code: 'context_length_exceeded' }
  expect(forOtherDialect(long)).toEqual({ status: 400, message: 'No.', overflow: true })
})

test('a long message is read quickly', async () => {
  const message = 'input token count'.repeat(1_000_000)
  await expectCheap(1_000, () => {
    for (let count = 0; count < 100; count++) isContextOverflow({ message })
  })
})
