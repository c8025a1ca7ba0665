// What a request names of what is kept at an upstream, where it is found beside the thread that serves calls.

import { describe, expect, test } from 'bun:test'
import { protocols } from '../list.ts'
import type { Asked } from '../protocol.ts'
import { countDialects } from '../token-counts/token-counts.ts'
import { findObject, noteFound } from './json-object.ts'
import { findReferences, referencesFound } from './references.ts'

const pad = 'x'.repeat(70_000)
const asked = (path: string): Asked => ({ path, header: () => undefined, query: () => null })

describe('what a large body names is not looked for again by whoever reads it:', () => {
  const turn = { role: 'user', content: [{ type: 'text', text: pad }, { file_id: 'file-1' }] }
  const contents = [{ role: 'user', parts: [{ text: pad }, { fileData: { fileUri: 'files/1' } }] }]
  const talk = { model: 'a/b', max_tokens: 1, messages: [turn] }
  const count = '/v1beta/models/a/b:countTokens'
  const rows = [
    ['openai-chat', talk, '/v1/chat/completions', protocols['openai-chat'].readCall],
    ['anthropic-messages', talk, '/v1/messages', protocols['anthropic-messages'].readCall],
    ['openai-responses', { model: 'a/b', input: [turn] }, '/v1/responses', protocols['openai-responses'].readCall],
    ['gemini', { contents }, '/v1beta/models/a/b:generateContent', protocols.gemini.readCall],
    ['a count', talk, '/v1/messages/count_tokens', countDialects['anthropic-messages'].readCall],
    ['a count of Gemini', { contents }, count, countDialects.gemini.readCall],
    ['a whole request', { generateContentRequest: { contents } }, count, countDialects.gemini.readCall],
  ] as const

  test.each(rows)('%s', (_name, json, path, readCall) => {
    const body = Buffer.from(JSON.stringify(json))
    // As it comes from another thread.
    noteFound(body, structuredClone(findObject(body)))
    const call = readCall(body, asked(path))
    const found = referencesFound(call.json)
    expect(found).toEqual(findReferences(call.json) as never)
    expect(found).toHaveLength(1)
  })
})

test('the same thing counts once, but where it is named decides who looks after it', () => {
  const places = (json: object) => findReferences(json as never).map(({ path }) => path.join('.'))
  const id = 'resp_1'
  expect(
    places({ previous_response_id: id, extra: { previous_response_id: id }, more: { previous_response_id: id } }),
  ).toEqual(['previous_response_id', 'extra.previous_response_id'])
  const draft = { draft_task: { id: 'cgt-1' } }
  expect(places({ content: [draft, draft], extra: draft })).toEqual(['content.0.draft_task', 'extra.draft_task'])
})

test('an address has its host only where anybody may fetch it', () => {
  const host = (fileUri: string) => findReferences({ fileData: { fileUri } } as never).map(found => found.host)
  expect(host('https://x.example/a.mp4')).toEqual(['x.example'])
  expect(host('https://storage.googleapis.com/b/files/a')).toEqual(['storage.googleapis.com'])
  const kept = ['https://www.googleapis.com/a', 'https://x.example/files/a', 'https://u:p@x.example/a', 'files/a']
  for (const one of kept) expect(host(one)).toEqual([undefined])
})
