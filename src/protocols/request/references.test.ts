// Tests the references in large bodies, which another thread has found.

import { describe, expect, test } from 'bun:test'
import type { RequestHead } from '../protocol.ts'
import { protocols } from '../protocols.ts'
import { tokenCountDialects } from '../token-counts/count-dialects.ts'
import { cacheParsedBody, parseBody } from './json-body.ts'
import { findReferences, getCachedReferences } from './references.ts'

const pad = 'x'.repeat(70_000)
const headFor = (path: string): RequestHead => ({ path, header: () => undefined, query: () => null })

describe('references of a large body are not searched again:', () => {
  const message = { role: 'user', content: [{ type: 'text', text: pad }, { file_id: 'file-1' }] }
  const contents = [{ role: 'user', parts: [{ text: pad }, { fileData: { fileUri: 'files/1' } }] }]
  const request = { model: 'a/b', max_tokens: 1, messages: [message] }
  const count = '/v1beta/models/a/b:countTokens'
  const rows = [
    ['openai-chat', request, '/v1/chat/completions', protocols['openai-chat'].readCall],
    ['anthropic-messages', request, '/v1/messages', protocols['anthropic-messages'].readCall],
    ['openai-responses', { model: 'a/b', input: [message] }, '/v1/responses', protocols['openai-responses'].readCall],
    ['gemini', { contents }, '/v1beta/models/a/b:generateContent', protocols.gemini.readCall],
    [
      'a token count of Anthropic',
      request,
      '/v1/messages/count_tokens',
      tokenCountDialects['anthropic-messages'].readCall,
    ],
    ['a token count of Gemini', { contents }, count, tokenCountDialects.gemini.readCall],
    [
      'a token count of a whole request of Gemini',
      { generateContentRequest: { contents } },
      count,
      tokenCountDialects.gemini.readCall,
    ],
  ] as const

  test.each(rows)('%s', (_name, json, path, readCall) => {
    const body = Buffer.from(JSON.stringify(json))
    // The other thread sends a clone of the parsed body.
    cacheParsedBody(body, structuredClone(parseBody(body)))
    const call = readCall(body, headFor(path))
    const found = getCachedReferences(call.json)
    expect(found).toEqual(findReferences(call.json) as never)
    expect(found).toHaveLength(1)
  })
})

test('the same id counts once for each kind of path', () => {
  const pathsOf = (json: object) => findReferences(json as never).map(({ path }) => path.join('.'))
  const id = 'resp_1'
  expect(
    pathsOf({ previous_response_id: id, extra: { previous_response_id: id }, more: { previous_response_id: id } }),
  ).toEqual(['previous_response_id', 'extra.previous_response_id'])
  const draft = { draft_task: { id: 'cgt-1' } }
  expect(pathsOf({ content: [draft, draft], extra: draft })).toEqual(['content.0.draft_task', 'extra.draft_task'])
})

test('a URL has a host only if it is public', () => {
  const host = (fileUri: string) => findReferences({ fileData: { fileUri } } as never).map(found => found.host)
  expect(host('https://x.example/a.mp4')).toEqual(['x.example'])
  expect(host('https://storage.googleapis.com/b/files/a')).toEqual(['storage.googleapis.com'])
  const withoutHost = [
    'https://www.googleapis.com/a',
    'https://x.example/files/a',
    'https://u:p@x.example/a',
    'files/a',
  ]
  for (const url of withoutHost) expect(host(url)).toEqual([undefined])
})
