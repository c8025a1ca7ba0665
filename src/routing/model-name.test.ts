// Tests <provider>/<model> names, valid and invalid.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import { checkModelName, parseModelName } from './model-name.ts'

test.each([
  ['openai/gpt-4o', 'openai', 'gpt-4o'],
  ['openrouter/anthropic/claude', 'openrouter', 'anthropic/claude'],
  ['a/b:free@x.y_z~1', 'a', 'b:free@x.y_z~1'],
  ['a//b', 'a', '/b'],
])('%s is a model name', (text, provider, model) => {
  expect(parseModelName(text)).toEqual({ provider, model })
})

test.each([
  ...['', '/', 'gpt-4o', '/gpt-4o', 'openai/', 'open ai/x', 'openai/x y', 'openai/é', 'openai/x\n', 'openai/\u0000'],
  ...['öpenai/x', `openai/${'x'.repeat(250)}`, 'openai/😀'],
])('%p is refused as a model name', text => {
  let fault: unknown
  try {
    parseModelName(text)
  } catch (thrown) {
    fault = thrown
  }
  expect(fault).toBeInstanceOf(Refusal)
  expect(fault).toMatchObject({ code: 'model_malformed', extras: { param: 'model' } })
  // The caller's text may be anything, so the log does not repeat it.
  if (text.length > 5) expect((fault as Refusal).message).not.toContain(text)
})

test.each(['gpt-4o', 'openai/gpt-4o', 'a/b/c', 'x'])('%s may be the name of a model', text => {
  expect(() => checkModelName(text)).not.toThrow()
})

test.each(['', '/', '/gpt-4o', 'openai/', 'gpt 4o', 'é', 'x'.repeat(257)])('%p cannot be the name of a model', text => {
  expect(() => checkModelName(text)).toThrow('model_malformed')
})

test('the longest model name has 256 characters', () => {
  expect(parseModelName(`a/${'x'.repeat(254)}`).model).toHaveLength(254)
})
