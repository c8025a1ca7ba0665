// A model name that becomes part of a path never leads out of the base URL that the credential is for.

import { expect, test } from 'bun:test'
import { Refusal } from '../../src/base/errors.ts'
import { pathFor } from '../../src/pipeline/40-adapt.ts'
import { isBelowBaseUrl } from '../../src/upstreams/request-signature.ts'

const paths = ['/models/{model}:generateContent', '/model/{model}/invoke', '/{model}']
const evil = ['..', '.', '../x', 'a/../../x', 'a/..', './x', 'a/./b', '..\\x', 'a\\..\\b', '/x', 'a//b', '...']
const good = ['gpt-5', 'a.b', 'a..b', 'vendor/name:tag', 'x?y#z', 'a%2e%2e%2fb', 'arn:aws:x:1:profile/y', 'ü ö']

test.each(evil)('%j is not a model name', model => {
  for (const path of paths) expect(() => pathFor(path, model)).toThrow(Refusal)
  expect(pathFor('/chat/completions', model)).toBe('/chat/completions')
})

test.each(good)('%j stays below the base URL', model => {
  const base = 'https://api.example.com/v1'
  for (const path of paths) expect(isBelowBaseUrl(base + pathFor(path, model), base)).toBe(true)
})
