// Tests that a log entry is one line of JSON, whatever its fields contain, and has no secret.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildLog, describeFault } from './log.ts'
import { Secret } from './secrets/secret.ts'

function logLine(fields: Record<string, unknown>, event = 'said'): string {
  const lines: string[] = []
  buildLog('debug', line => void lines.push(line)).info(event, fields)
  expect(lines).toHaveLength(1)
  return lines[0]!
}

const CANARY = 'canary0123456789'

test('a log line has time, level, event and fields, in that order', () => {
  const line = JSON.parse(logLine({ request: 'req_1', n: 1n }))
  expect(Object.keys(line)).toEqual(['time', 'level', 'event', 'request', 'n'])
  expect(line).toMatchObject({ level: 'info', event: 'said', request: 'req_1', n: '1' })
  expect(new Date(line.time as string).getTime()).toBeGreaterThan(0)
})

test('events below the level are not written', () => {
  const lines: string[] = []
  const log = buildLog('warn', line => void lines.push(line))
  log.debug('x')
  log.info('x')
  log.warn('x')
  log.error('x')
  expect(lines.map(line => JSON.parse(line).level)).toEqual(['warn', 'error'])
})

test('a log line has no line break and no control character, whatever the fields contain', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 })
  const forged = '"}\n{"level":"error"'
  const controlText = fc.constantFrom('\n', '\r\n', '\u2028', '\u0085', '\u001b[2J', '\u202e', forged, '\u0000')
  const texts = fc.array(fc.oneof(text, controlText), { maxLength: 6 }).map(parts => parts.join(''))
  fc.assert(
    fc.property(texts, texts, (event, field) => {
      const line = logLine({ field }, event)
      expect(line.endsWith('\n')).toBe(true)
      expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e]/u)
      expect(Object.keys(JSON.parse(line))).toEqual(['time', 'level', 'event', 'field'])
    }),
  )
})

describe('a log line', () => {
  const failed = new TypeError(`cannot reach https://joe:${CANARY}@gate.example:81/v1?key=${CANARY}#${CANARY}`, {
    cause: new Error(`Bearer ${CANARY}`, { cause: new Error(`GET /v1beta/x?alt=sse&key=${CANARY}&a=1`) }),
  })
  const rows: Record<string, unknown> = {
    'a Secret': new Secret(CANARY),
    'a nested Secret': { of: [{ channel: { key: new Secret(CANARY) } }] },
    'an error': failed,
    'a described error': describeFault(failed),
    'a nested error': { of: [{ failed }] },
    'the fields of an error': Object.assign(new Error('refused'), { request: { authorization: CANARY }, path: CANARY }),
    'a stack': failed.stack,
    'a key of the gateway in a text': `the key wk-${CANARY} is not valid`,
    'a key of a provider in a text': `Incorrect API key provided: sk-proj-${CANARY}.`,
    'a password in an address': `http://${CANARY}@10.0.0.1/`,
    'a password with an at': `http://u:${CANARY}@${CANARY}@host/x`,
    'an address in quotes': `tried "https://h/?token=${CANARY}" twice`,
    'basic credentials': `Proxy-Authorization: Basic ${CANARY}==`,
  }

  test.each(Object.entries(rows))('has no secret from %s', (_, field) => {
    expect(logLine({ field })).not.toContain(CANARY)
  })

  test('has the rest of the text', () => {
    expect(describeFault(failed)).toBe(
      'TypeError: cannot reach https://gate.example:81/v1?[secret] ' +
        '(Error: Bearer [secret] (Error: GET /v1beta/x?alt=sse&key=[secret]&a=1))',
    )
    expect(logLine({ address: 'http://[::1]:8080/metrics' })).toContain('"http://[::1]:8080/metrics"')
  })
})

test('fields that cannot be written do not throw, and do not hide the event', () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  expect(JSON.parse(logLine({ circle }))).toMatchObject({ event: 'said', fields: 'unreadable' })
  const throwing = {
    toJSON() {
      throw new Error('no')
    },
  }
  expect(JSON.parse(logLine({ throwing }))).toMatchObject({ event: 'said' })
  const loop = new Error('round')
  loop.cause = loop
  expect(describeFault(loop)).toBe('Error: round (Error: round (Error: round (Error: round)))')
})
