// An answer that was cut off never looks complete: every finish reason of every dialect and vendor, and unknown ones, for
// callers of every dialect, plain and streamed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finish } from '../../src/protocols/neutral/answer.ts'
import type { CallerDialect, FinishReasonField } from '../../src/protocols/neutral/finish-reasons.ts'
import { finishReasonRows, readFinish, writtenReasons } from '../../src/protocols/neutral/finish-reasons.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import type { Json } from './raw-callers.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { TestAnswer } from './reasons.ts'
import {
  eventsOf,
  plainJson,
  reasonIn,
  reasonInStream,
  scriptFor,
  streamedJson,
  upstreamOf,
  wholeOf,
} from './reasons.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key({ credit: '1000', qpm: 100_000 })
})
afterAll(() => harness.stop())

interface Result {
  readonly answer: Caller
  readonly reason: unknown
  readonly losses: readonly string[]
  readonly record: Record<string, unknown>
}

/** With `slowly` the end of a stream is sent only after the caller has the text. */
async function ask(caller: Dialect, testAnswer: TestAnswer, stream: boolean, slowly = false): Promise<Result> {
  const { promise, resolve } = Promise.withResolvers<void>()
  harness.upstream.plan(scriptFor(testAnswer, stream, slowly ? promise : undefined))
  const model = modelOf(upstreamOf(testAnswer.field))
  const answer = openRaw(harness.url, requestOf(caller, key, { model, stream }, { 'x-weir-comments': 'on' }))
  if (slowly && stream) await answer.until(({ text }) => text.includes(testAnswer.text), 'the caller has the text')
  resolve()
  await answer.whole()
  await harness.idle()
  const record = harness.lastRecord()!
  const isStream = stream && answer.status === 200
  const reason = isStream
    ? reasonInStream(caller, eventsOfBody(caller, answer.body))
    : answer.status === 200
      ? reasonIn[caller](JSON.parse(String(answer.body)) as Json)
      : undefined
  return { answer, reason, record, losses: lossesIn(answer) }
}

/** The losses in the header, and in the comment before the last event of a stream. */
function lossesIn(answer: Caller): readonly string[] {
  const late = /^: X-Weir-Loss (.*)$/m.exec(String(answer.body))?.[1]
  return [answer.header('x-weir-loss'), late].flatMap(codes => codes?.split(', ') ?? [])
}

const fields = ['openai-chat', 'anthropic-messages', 'gemini', 'gemini-block', 'openai-responses'] as const
const callerDialectOf = (caller: Dialect): CallerDialect => (caller === 'ark' ? 'openai-chat' : caller)
const cells = fields.flatMap(field =>
  dialects.flatMap(caller => [false, true].map(stream => [field, caller, stream] as const)),
)

const testAnswerOf = (field: FinishReasonField, reason: string, finish: Finish): TestAnswer => {
  const text = field === 'gemini-block' ? '' : 'Half an answ'
  return { field, reason, text, ...(finish === 'calls' && { calls: true }) }
}

/** Finish reasons of complete answers. */
const wholeReasons: Readonly<Record<Dialect, readonly string[]>> = {
  'openai-chat': ['stop', 'tool_calls', 'function_call'],
  'ark': ['stop', 'tool_calls', 'function_call'],
  'anthropic-messages': ['end_turn', 'stop_sequence', 'tool_use'],
  'openai-responses': ['completed'],
  'gemini': ['STOP'],
}

const goodEnds: readonly Finish[] = ['stop', 'stop_sequence', 'calls']

function expectTranslated(
  result: Result,
  { caller, reason, finish }: { caller: Dialect; reason: string; finish: Finish },
) {
  const { reason: expectedReason, isExact } = writtenReasons[callerDialectOf(caller)][finish]
  expect({ reason, said: result.reason }).toEqual({ reason, said: expectedReason })
  expect(wholeReasons[caller].includes(String(result.reason))).toBe(goodEnds.includes(finish))
  const code = `finish_reason.${reason.toLowerCase().replace(/[^a-z0-9_.]+/g, '_')}`.slice(0, 48)
  expect({ reason, lost: result.losses.includes(code) }).toEqual({ reason, lost: !isExact })
  expect(
    String(result.record.loss ?? '')
      .split(',')
      .includes(code),
  ).toBe(!isExact)
  expect(result.record).toMatchObject({ outcome: 'completed', status: 200 })
}

function expectFailed({ answer, record }: Result, caller: Dialect, stream: boolean): void {
  if (stream) {
    const error = rawCallers[caller].error(rawCallers[caller].failed(eventsOfBody(caller, answer.body)), 502)
    expect(error.message).toMatch(/fail|broke/i)
  } else {
    expect(answer.status).toBe(502)
    rawCallers[caller].error(JSON.parse(String(answer.body)), 502)
  }
  expect(record).toMatchObject({ outcome: 'upstream_failed' })
}

describe.each(cells)('a finish reason of %s for a caller of %s (streamed: %p)', (field, caller, stream) => {
  const isNative = upstreamOf(field) === caller
  const rows = finishReasonRows.filter(row => row.field === field)

  test.each(rows.map(row => [row.reason, row.finish] as const))('%s', async (reason, finish) => {
    const testAnswer = testAnswerOf(field, reason, finish)
    const result = await ask(caller, testAnswer, stream, finish === 'failed')
    // Some upstreams write this value until there is a reason: a stream that ends with it was cut off.
    if (stream && reason === 'FINISH_REASON_UNSPECIFIED') {
      if (!isNative) expectFailed(result, caller, stream)
      expect([result.record.outcome, String(result.answer.body).includes('error')]).toEqual(['upstream_failed', true])
    } else if (isNative && !(field === 'openai-responses' && finish === 'failed')) {
      const sent = stream ? eventsOf(testAnswer) : [wholeOf(testAnswer)]
      for (const one of sent) {
        if (isUsageAlone(one)) continue // only the gateway asked for usage
        expect(String(result.answer.body)).toContain(typeof one === 'string' ? one : JSON.stringify(one))
      }
      const outcome = finish === 'failed' ? 'upstream_failed' : 'completed'
      expect(result.record).toMatchObject({ outcome, status: 200, loss: null })
    } else if (finish === 'failed') expectFailed(result, caller, stream)
    else expectTranslated(result, { caller, reason, finish })
  })
})

const isUsageAlone = (event: Json | string): boolean =>
  typeof event !== 'string' && Array.isArray(event.choices) && event.choices.length === 0

describe('an unknown finish reason', () => {
  const odd = ['', ...Array.from({ length: 3 }, () => `X_${Math.random().toString(36).slice(2)}`), 'constructor']
  const known: readonly FinishReasonField[] = ['openai-chat', 'anthropic-messages', 'gemini', 'openai-responses']
  const fieldPairs = known.flatMap(field =>
    dialects.filter(caller => caller !== field).map(caller => [field, caller] as const),
  )

  test.each(fieldPairs)('of %s does not look complete for %s', async (field, caller) => {
    for (const word of odd) {
      for (const stream of [false, true]) {
        const reason = field === 'openai-responses' ? `incomplete${word && '/'}${word}` : word
        // A Gemini stream without a reason was cut off.
        if (reason === '' && stream && field === 'gemini') continue
        const result = await ask(caller, { field, reason: reason || undefined, text: 'Half an answ' }, stream)
        expect(wholeReasons[caller]).not.toContain(String(result.reason))
        const code = reason.toLowerCase().replace('/', '_') || 'missing'
        expect(result.losses.join()).toContain(`finish_reason.${code}`)
      }
    }
  })

  test('after a tool call does not look complete, because the call may be cut off', async () => {
    const testAnswer: TestAnswer = { field: 'openai-chat', reason: 'x_new', text: '', calls: true }
    expect((await ask('anthropic-messages', testAnswer, true)).reason).toBe('max_tokens')
  })

  test('without content does not look complete either', async () => {
    for (const [field, reason] of [
      ['gemini', 'MALFORMED_FUNCTION_CALL'],
      ['openai-chat', 'x_new'],
    ] as const) {
      for (const stream of [false, true]) {
        const { answer, reason: said, losses } = await ask('anthropic-messages', { field, reason, text: '' }, stream)
        expect([answer.status, said]).toEqual([200, 'max_tokens'])
        expect(losses).toEqual([`finish_reason.${reason.toLowerCase()}`])
      }
    }
  })

  test('tool_calls without a tool call is cut off without text, and a reported loss with text', async () => {
    const empty: TestAnswer = { field: 'openai-chat', reason: 'tool_calls', text: '' }
    expect((await ask('anthropic-messages', empty, false)).reason).toBe('max_tokens')
    const withText = await ask('anthropic-messages', { ...empty, text: 'Calling' }, false)
    expect([withText.reason, withText.losses]).toEqual(['end_turn', ['finish_reason.tool_calls']])
  })

  test('of a lost call is in the last event of Gemini, which has a field for it, without asking', async () => {
    const teleport = { id: 'c0', type: 'teleport', teleport: { to: 'Paris' } }
    const testAnswer: TestAnswer = { field: 'openai-chat', reason: 'tool_calls', text: 'Off', more: [teleport] }
    harness.upstream.plan(scriptFor(testAnswer, true))
    const request = requestOf('gemini', key, { model: modelOf('openai-chat'), stream: true })
    const events = eventsOfBody('gemini', String((await rawRequest(harness.url, request)).body))
    const { candidates } = JSON.parse(events.at(-1)!) as { candidates: Json[] }
    expect(candidates[0]).toMatchObject({
      finishReason: 'OTHER',
      finishMessage: expect.stringMatching(/^X-Weir-Loss: .*tool_calls\.teleport, finish_reason\.tool_calls$/),
    })
  })

  test('with a suffix after a colon is read without the suffix', () => {
    expect(readFinish('openai-chat', 'content_filter: RECITATION')).toBe('filtered')
    expect(readFinish('openai-chat', 'function_call_filter: MALFORMED_FUNCTION_CALL')).toBe('malformed')
    expect(readFinish('openai-chat', 'Length')).toBe('length')
  })
})

describe('a tool call that the caller does not get', () => {
  const teleport = { type: 'teleport', teleport: { to: 'Paris' } }
  const lostCalls: readonly (readonly [FinishReasonField, reason: string, Json])[] = [
    ['openai-chat', 'tool_calls', { id: 'c0', ...teleport }],
    ['openai-chat', 'tool_calls', teleport],
    ['openai-chat', 'tool_use', { id: 'c0', type: 'function', function: { arguments: '{}' } }],
    ['openai-chat', 'stop', { id: 'c0', ...teleport }],
    ['anthropic-messages', 'tool_use', { type: 'tool_use', id: 'toolu_1', input: {} }],
    ['anthropic-messages', 'tool_use', { type: 'teleport_use', id: 'toolu_1', to: 'Paris' }],
    ['anthropic-messages', 'tool_use', { type: 'hologram', url: 'https://x.example' }],
    ['anthropic-messages', 'end_turn', { type: 'tool_use', id: 'toolu_1', input: {} }],
    ['gemini', 'STOP', { functionCall: { args: { to: 'Paris' } } }],
    ['gemini', 'STOP', { functionCall: 'f' }],
    ['gemini', 'tool_calls', { hologram: { to: 'Paris' } }],
    ['openai-responses', 'completed', { id: 'cu_1', type: 'computer_call', call_id: 'c0', action: { type: 'wait' } }],
    ['openai-responses', 'completed', { id: 'fc_1', type: 'function_call', call_id: 'c0', arguments: '{}' }],
    ['openai-responses', 'completed', { id: 'mcpr_1', type: 'mcp_approval_request', name: 'f', arguments: '{}' }],
  ]
  const inCells = lostCalls.flatMap(row =>
    dialects.filter(caller => caller !== row[0]).map(caller => [...row, caller] as const),
  )
  test.each(inCells)('of %s with %s (%j) does not look complete for %s', async (field, reason, call, caller) => {
    for (const stream of [false, true]) {
      const result = await ask(caller, { field, reason, text: 'Half an answ', more: [call] }, stream)
      expect([stream, result.answer.status]).toEqual([stream, 200])
      expect(wholeReasons[caller]).not.toContain(String(result.reason))
      expect(result.losses).toContain(`finish_reason.${reason.toLowerCase()}`)
      expect(String(result.record.loss)).toContain(`finish_reason.${reason.toLowerCase()}`)
    }
  })

  const shell = { id: 'sh_1', type: 'shell_call', call_id: 'c0', action: { commands: ['ls'] } }
  const ownTools: readonly (readonly [FinishReasonField, reason: string, readonly Json[]])[] = [
    ['openai-responses', 'completed', [{ id: 'ws_1', type: 'web_search_call', status: 'completed' }]],
    ['openai-responses', 'completed', [shell, { type: 'shell_call_output', call_id: 'c0', output: [] }]],
    ['anthropic-messages', 'end_turn', [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }]],
    ['anthropic-messages', 'end_turn', [{ type: 'hologram' }]],
    ['gemini', 'STOP', [{ executableCode: { language: 'PYTHON', code: '1' } }]],
    ['openai-chat', 'stop', [{ index: 0, type: 'function', function: { name: '', arguments: '' } }]],
  ]
  test.each(ownTools)('is not one of the provider itself (%s, %s, %j)', async (field, reason, more) => {
    for (const caller of dialects.filter(one => one !== field)) {
      for (const stream of [false, true]) {
        const result = await ask(caller, { field, reason, text: 'An answer', more }, stream)
        expect([caller, wholeReasons[caller]]).toEqual([caller, expect.arrayContaining([String(result.reason)])])
      }
    }
  })
})

describe('an upstream that fails inside a 200', () => {
  const failures: readonly (readonly [string, Json])[] = [
    ['by its reason', { choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }],
    [
      'by the error of a choice',
      {
        choices: [{ index: 0, delta: {}, finish_reason: 'stop', error: { code: 502, message: 'It broke.' } }],
      },
    ],
    [
      'in a field of a vendor',
      {
        choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
        x_groq: { id: 'req_1', error: 'It broke.' },
      },
    ],
    [
      'by a status of its own',
      {
        choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
        base_resp: { status_code: 1013, status_msg: 'It broke.' },
      },
    ],
  ]

  const whole = (last: Json, content: string): Json => {
    const [choice] = last.choices as [Json]
    const { delta: _delta, ...rest } = choice
    return { ...last, id: 'c', choices: [{ ...rest, message: { role: 'assistant', content } }] }
  }

  test.each(failures)('%s: before content is a 502, natively and translated', async (_name, last) => {
    for (const caller of ['openai-chat', 'gemini'] as const) {
      for (const stream of [false, true]) {
        harness.upstream.plan(stream ? streamedJson([last, '[DONE]']) : plainJson(whole(last, '')))
        const request = requestOf(caller, key, { model: modelOf('openai-chat'), stream })
        const answer = await rawRequest(harness.url, request)
        expect([caller, stream, answer.status]).toEqual([caller, stream, 502])
      }
    }
  })

  test.each(failures)('%s: after content passes natively, and is recorded as failed and free', async (_name, last) => {
    const piece = { choices: [{ index: 0, delta: { content: 'Half' }, finish_reason: null }] }
    harness.upstream.plan(streamedJson([piece, last, '[DONE]']))
    const request = requestOf('openai-chat', key, { model: modelOf('openai-chat'), stream: true })
    const answer = await rawRequest(harness.url, request)
    for (const event of [piece, last]) expect(String(answer.body)).toContain(`data: ${JSON.stringify(event)}\n\n`)
    expect(String(answer.body)).toEndWith('data: [DONE]\n\n')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', rule: 'upstream_broke_off', cost: 0 })
  })
})

/** The members of an enum in a declaration file. */
function membersOf(file: string, name: string): readonly string[] {
  const text = readFileSync(join(import.meta.dir, '..', '..', 'node_modules', file), 'utf8')
  const from = text.indexOf(`enum ${name} {`)
  return [...text.slice(from, text.indexOf('\n}', from)).matchAll(/= "([A-Z_]+)"/g)].map(([, member]) => member!)
}

/** The string literals of a type or a field in a declaration file. */
function textsOf(file: string, name: string): readonly string[] {
  const text = readFileSync(join(import.meta.dir, '..', '..', 'node_modules', file), 'utf8')
  const from = text.indexOf(name)
  expect(from).toBeGreaterThan(0)
  return [...text.slice(from + name.length, text.indexOf(';', from)).matchAll(/'([a-z_]+)'/g)].map(([, one]) => one!)
}

test('every finish reason of the official SDKs is in the table', () => {
  const has = (field: FinishReasonField): readonly string[] =>
    finishReasonRows.filter(row => row.field === field).map(({ reason }) => reason)
  const google = '@google/genai/dist/genai.d.ts'
  const anthropic = '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts'
  const responses = 'openai/resources/responses/responses.d.ts'
  const chat = 'openai/resources/chat/completions/completions.d.ts'
  const wanted: readonly (readonly [FinishReasonField, readonly string[]])[] = [
    ['gemini', membersOf(google, 'FinishReason')],
    ['gemini-block', membersOf(google, 'BlockedReason')],
    ['anthropic-messages', textsOf(anthropic, 'type BetaStopReason =')],
    ['openai-chat', textsOf(chat, 'finish_reason:')],
    ['openai-responses', textsOf(responses, 'type ResponseStatus =')],
    ['openai-responses', textsOf(responses, "reason?: 'max_output_tokens").map(reason => `incomplete/${reason}`)],
  ]
  for (const [field, reasons] of wanted) {
    expect(reasons.length).toBeGreaterThan(2)
    expect(reasons.filter(reason => !has(field).includes(reason))).toEqual([])
  }
})
