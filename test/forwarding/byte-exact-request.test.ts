// An upstream receives what the caller sent, byte for byte, except for a closed list of changes: the value of the
// model, and include_usage where the gateway needs it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Harness } from '../support/gateway.ts'
import { chat } from '../support/gateway.ts'
import { startHasty } from './caller.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHasty()
  key = await harness.key({ qpm: 100_000 })
})
afterAll(() => harness.stop())

/** Sends the text and returns the text that the upstream received. */
async function forwarded(body: string): Promise<string> {
  const received = harness.upstream.nextRequest()
  const response = await chat(harness, key, body)
  expect(response.status, await response.text()).toBe(200)
  return Buffer.from((await received).body).toString('utf8')
}

const messages = '"messages":[{"role":"user","content":"hi"}]'
const callerModel = '"openai/gpt-4o-mini"'
const upstreamModel = '"gpt-4o-mini"'

describe('a plain request', () => {
  const unchanged: readonly (readonly [string, string])[] = [
    ['nothing but what is needed', `{"model":${callerModel},${messages}}`],
    ['odd white space', ` \t\r\n{ "model"\n:\t${callerModel} ,\r\n ${messages}\t}\n `],
    [
      'unicode escapes',
      `{"model":${callerModel},"messages":[{"role":"user","content":"\\u00e9\\ud83d\\ude00\\/\\u0000"}]}`,
    ],
    ['raw unicode', `{"model":${callerModel},"messages":[{"role":"user","content":"é 😀 \u2028 \ufeff"}]}`],
    ['integers beyond 2^53', `{"seed":12345678901234567890123,"model":${callerModel},${messages}}`],
    [
      'numbers as they were written',
      `{"model":${callerModel},"temperature":1.0,"top_p":1E-0,"x":-0.0,"y":1e400,${messages}}`,
    ],
    ['another order of keys', `{"z":1,${messages},"a":2,"model":${callerModel},"stream":false}`],
    [
      'unknown fields',
      `{"model":${callerModel},${messages},"x_y":{"deep":[1,{"er":null}]},"extra_body":{"top":"a/b"}}`,
    ],
    ['duplicates in the data of the caller', `{"model":${callerModel},${messages},"metadata":{"x":1,"x":2,"x":3}}`],
    ['the name of a field with escapes', `{"mod\\u0065l":${callerModel},${messages}}`],
    ['a field called __proto__', `{"model":${callerModel},"__proto__":{"mode":"x"},"constructor":1,${messages}}`],
    ['braces and quotes in strings', `{"x":"{\\"model\\":\\"no/no\\"}","model":${callerModel},${messages}}`],
    [
      'stream_options of a plain call',
      `{"model":${callerModel},"stream_options":{"include_obfuscation":false},${messages}}`,
    ],
  ]

  test.each(unchanged)('passes unchanged: %s', async (_name, body) => {
    expect(await forwarded(body)).toBe(body.replace(callerModel, upstreamModel))
  })

  test('replaces a model that was written with escapes', async () => {
    const body = `{"model":"op\\u0065nai\\/gpt-4o-mini",${messages}}`
    expect(await forwarded(body)).toBe(`{"model":${upstreamModel},${messages}}`)
  })

  test('does not replace other fields that are called model', async () => {
    const body = `{"metadata":{"model":${callerModel}},"model":${callerModel},"messages":[{"role":"user","content":${callerModel}}]}`
    expect(await forwarded(body)).toBe(
      `{"metadata":{"model":${callerModel}},"model":${upstreamModel},"messages":[{"role":"user","content":${callerModel}}]}`,
    )
  })
})

describe('a streamed request gets include_usage', () => {
  const includeUsage = '"include_usage":true'
  const rows: readonly (readonly [string, string, string])[] = [
    ['without stream_options', `{"stream":true,`, `{"stream_options":{${includeUsage}},"stream":true,`],
    ['with null', `{"stream_options":null,"stream":true,`, `{"stream_options":{${includeUsage}},"stream":true,`],
    [
      'with an empty object',
      `{"stream_options":{},"stream":true,`,
      `{"stream_options":{${includeUsage}},"stream":true,`,
    ],
    [
      'with include_usage false',
      '{"stream_options":{"include_usage":false},"stream":true,',
      `{"stream_options":{${includeUsage}},"stream":true,`,
    ],
  ]

  test.each(rows)('%s', async (_name, start, sent) => {
    const rest = `"model":${callerModel},${messages}}`
    expect(await forwarded(start + rest)).toBe(sent + rest.replace(callerModel, upstreamModel))
  })

  test('and stays unchanged if it has include_usage already', async () => {
    const options = '"stream_options" : { "include_usage" : true , "x":1.0 }'
    const body = `{ "stream":true,\n ${options},"model":${callerModel},${messages}}`
    expect(await forwarded(body)).toBe(body.replace(callerModel, upstreamModel))
  })

  test('without a change to the other members of stream_options', async () => {
    const options = '{ "include_obfuscation" : false,"big":12345678901234567890, "x":1.0 ,"é":"\\u00e9"}'
    const received = await forwarded(`{"stream":true,"stream_options":${options},"model":${callerModel},${messages}}`)
    const sent = /"stream_options":(\{[^}]*\})/.exec(received)![1]!
    expect(JSON.parse(sent).include_usage).toBe(true)
    expect(sent.replace(/\s*"include_usage"\s*:\s*true\s*,?/, '').replace(/,\s*\}$/, '}')).toBe(options)
  })
})

test('any body passes unchanged except for its model', async () => {
  const value = fc.jsonValue({ maxDepth: 4, stringUnit: letter })
  const gap = fc.constantFrom('', ' ', '\n', '\t \r\n')
  const fields = fc.dictionary(
    fc.string({ unit: letter }).filter(name => !readFields.has(name.toLowerCase())),
    value,
    { maxKeys: 6 },
  )
  await fc.assert(
    fc.asyncProperty(fields, gap, fc.nat(6), async (more, space, position) => {
      const rows = Object.entries(more).map(([name, json]) => `${JSON.stringify(name) + space}:${JSON.stringify(json)}`)
      rows.splice(position % (rows.length + 1), 0, `"model"${space}:${space}${callerModel}`, messages)
      const body = `{${space}${rows.join(`${space},${space}`)}${space}}`
      expect(await forwarded(body)).toBe(spliceOnce(body))
    }),
    { numRuns: 60 },
  )
})

/** Without these letters no name or text can be a word such as `ocr`, `mcp` or `web`, which may name a paid service. */
const letter = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }).filter(char => !/[aceiou]/i.test(char))

const readFields = new Set(['n'])

/** Random fields cannot hold the caller's model name, so its first occurrence is the right one. */
const spliceOnce = (body: string): string => body.replace(callerModel, upstreamModel)
