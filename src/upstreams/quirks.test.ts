// Tests each quirk on a request, and that no quirk changes other bytes.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { applyQuirks, quirks, readQuirk, streamFormat } from './quirks.ts'

const body = '{ "model" : "m","stream":true, "max_tokens":1.50, "messages":[ {"role":"user"} ]}'
const request = {
  url: 'https://host.example:8080/a/b:c?x=1:2',
  headers: { 'accept': 'text/event-stream', 'anthropic-version': '2023-06-01', 'anthropic-beta': 'one, two,' },
  body: Buffer.from(body),
}

function applyTo(names: readonly string[], from = request) {
  const provider = { quirks: names.map(name => readQuirk(name)!) }
  const { url, headers, body } = applyQuirks(provider, from)
  return { url, headers: headers as Record<string, string>, body: Buffer.from(body).toString('utf8') }
}

test('the list of quirks is complete', () => {
  expect(Object.keys(quirks)).toEqual([
    ...['bodyWithoutModel', 'bodyWithoutStream', 'anthropicVersionInBody', 'anthropicBetaInBody', 'colonsEscaped'],
    'awsEventStream',
  ])
})

test('without quirks the same request object is returned', () => {
  expect(applyQuirks({ quirks: [] }, request)).toBe(request)
})

describe('a quirk', () => {
  test('bodyWithoutModel removes the model', () => {
    expect(applyTo(['bodyWithoutModel']).body).toBe(
      '{"stream":true, "max_tokens":1.50, "messages":[ {"role":"user"} ]}',
    )
  })

  test('bodyWithoutStream removes the flag', () => {
    const without = '{ "model" : "m", "max_tokens":1.50, "messages":[ {"role":"user"} ]}'
    expect(applyTo(['bodyWithoutStream']).body).toBe(without)
  })

  test('anthropicVersionInBody moves the version from the header to the body', () => {
    const twice = { ...request, body: Buffer.from('{"anthropic_version":"x","a":1}') }
    const { headers, body } = applyTo(['anthropicVersionInBody:v-1'], twice)
    expect(body).toBe('{"anthropic_version":"v-1","a":1}')
    expect(headers['anthropic-version']).toBeUndefined()
  })

  test('anthropicBetaInBody moves the features, if there are any', () => {
    const { headers, body } = applyTo(['anthropicBetaInBody'], { ...request, body: Buffer.from('{"a":1}') })
    expect(body).toBe('{"a":1,"anthropic_beta":["one","two"]}')
    expect(headers['anthropic-beta']).toBeUndefined()
    const without = { ...request, headers: { ...request.headers, 'anthropic-beta': ' ' }, body: Buffer.from('{"a":1}') }
    expect(applyTo(['anthropicBetaInBody'], without).body).toBe('{"a":1}')
  })

  test('colonsEscaped escapes colons of the path only', () => {
    expect(applyTo(['colonsEscaped']).url).toBe('https://host.example:8080/a/b%3Ac?x=1:2')
  })

  test('awsEventStream requests binary messages in streams, and reads them', () => {
    expect(applyTo(['awsEventStream']).headers.accept).toBe('application/vnd.amazon.eventstream')
    const plain = { ...request, headers: { ...request.headers, accept: 'application/json' } }
    expect(applyTo(['awsEventStream'], plain).headers.accept).toBe('application/json')
    const format = streamFormat({ quirks: [readQuirk('awsEventStream')!] })
    expect(format.contentType).toBe('application/vnd.amazon.eventstream')
    expect(() => format.open(1024).push(Buffer.alloc(64, 1))).toThrow()
  })
})

test('streams are server-sent events by default', () => {
  const format = streamFormat({ quirks: [readQuirk('bodyWithoutModel')!] })
  expect(format.contentType).toBe('text/event-stream')
  expect(format.open(1024).push(Buffer.from('data: 1\n\n')).map(String)).toEqual(['data: 1\n\n'])
})

test('quirks do not change the original request', () => {
  applyTo(Object.entries(quirks).map(([name, { hasArgument }]) => (hasArgument ? `${name}:x` : name)))
  expect(String(request.body)).toBe(body)
  expect(request.headers['anthropic-version']).toBe('2023-06-01')
})

test.each(['{}', '{"model":1}', ' { } '])('a body of %s is still an object after a quirk', text => {
  expect(applyTo(['bodyWithoutModel'], { ...request, body: Buffer.from(text) }).body.replaceAll(' ', '')).toBe('{}')
  expect(applyTo(['anthropicVersionInBody:x'], { ...request, body: Buffer.from('{}') }).body).toInclude('{"anthropic')
})

test('quirks do not change the values of other fields', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 8 }), fields => {
      const all = { ...fields, model: 'm', stream: true }
      const from = { ...request, body: Buffer.from(JSON.stringify(all)) }
      const { model, stream, anthropic_version, ...rest } = JSON.parse(JSON.stringify(all)) as Record<string, unknown>
      const changed = applyTo(['bodyWithoutModel', 'bodyWithoutStream', 'anthropicVersionInBody:v'], from).body
      expect(JSON.parse(changed)).toEqual({ ...rest, anthropic_version: 'v' })
    }),
  )
})
