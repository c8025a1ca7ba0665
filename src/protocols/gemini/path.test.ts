// Tests every form of path that Google's clients write, and paths that are refused.

import { describe, expect, test } from 'bun:test'
import { expectCheap } from '../../../test/support/cpu.ts'
import { Refusal } from '../../base/errors.ts'
import { readPath } from './path.ts'

describe('P32: a path whose model name has slashes and colons is read:', () => {
  const rows: readonly (readonly [path: string, version: string, model: string, verb: string])[] = [
    ['/v1beta/models/google/gemini-3-pro:generateContent', 'v1beta', 'google/gemini-3-pro', 'generateContent'],
    ['/v1beta/google/gemini-3-pro:generateContent', 'v1beta', 'google/gemini-3-pro', 'generateContent'],
    ['/v1beta/models/ollama/llama3.1:70b:generateContent', 'v1beta', 'ollama/llama3.1:70b', 'generateContent'],
    ['/v1/models/a/b:streamGenerateContent', 'v1', 'a/b', 'streamGenerateContent'],
    ['/v1alpha/tunedModels/a/b:countTokens', 'v1alpha', 'a/b', 'countTokens'],
    ['/v1beta/openai/gpt-5:generateContent', 'v1beta', 'openai/gpt-5', 'generateContent'],
    ['/v1beta/models/a/models/b:embedContent', 'v1beta', 'a/models/b', 'embedContent'],
    ['/v1beta/bare:batchEmbedContents', 'v1beta', 'bare', 'batchEmbedContents'],
  ]

  test.each(rows)('%s', (path, ...[version, model, verb]) => {
    expect(readPath(path)).toEqual({ version, model, method: verb } as ReturnType<typeof readPath>)
  })
})

describe('a path is no call of this dialect:', () => {
  const rows = [
    '/v1beta/models/a/b',
    '/v1beta/openai/chat/completions',
    '/v1beta/models/a/b:predict',
    '/v1beta/models/a/b:generatecontent',
    '/v2/models/a/b:generateContent',
    '/api/v1beta/models/a/b:generateContent',
    '/v1beta/models/a/b:generateContent/more',
    '',
  ]

  test.each(rows)('%s', path => {
    expect(readPath(path)).toBeUndefined()
  })
})

describe('a model name is refused:', () => {
  const rows = ['', '..', 'a/../b', 'a/..b', 'a//b', '/a/b', 'a/b/', './a', 'a%2Fb', 'a%2fb', 'a?b', 'a&b', 'a#b']

  test.each([...rows, 'a\\b', 'a\nb', 'a\u0000b', 'a\u007fb', 'a'.repeat(2_000)])('%p', name => {
    const read = () => readPath(`/v1beta/models/${name}:generateContent`)
    expect(read).toThrow(Refusal)
    expect(read).toThrow('model_malformed')
  })
})

test('a path with a hundred thousand colons is read quickly', async () => {
  const path = `/v1beta/${':a'.repeat(100_000)}`
  await expectCheap(500, () => expect(readPath(path)).toBeUndefined())
})
