// A log line is one line of JSON, whatever is put into it, and keeps no secret.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildLog, describeFault } from './log.ts'
import { Secret } from './secrets/secret.ts'

function logged(fields: Record<string, unknown>, event = 'said'): string {
  const lines: string[] = []
  buildLog('debug', line => void lines.push(line)).info(event, fields)
  expect(lines).toHaveLength(1)
  return lines[0]!
}

const CANARY = 'canary0123456789'

test('time, level, event and fields, in that order', () => {
  const line = JSON.parse(logged({ request: 'req_1', n: 1n }))
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

test('a line has no line break and no control character, whatever the fields contain', () => {
  const words = fc.string({ unit: 'binary', maxLength: 40 })
  const forged = '"}\n{"level":"error"'
  const evil = fc.constantFrom('\n', '\r\n', '\u2028', '\u0085', '\u001b[2J', '\u202e', forged, '\u0000')
  const said = fc.array(fc.oneof(words, evil), { maxLength: 6 }).map(parts => parts.join(''))
  fc.assert(
    fc.property(said, said, (event, field) => {
      const line = logged({ field }, event)
      expect(line.endsWith('\n')).toBe(true)
      expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e]/u)
      expect(Object.keys(JSON.parse(line))).toEqual(['time', 'level', 'event', 'field'])
    }),
  )
})

describe('no secret', () => {
  const failed = new TypeError(`cannot reach https://joe:${CANARY}@gate.example:81/v1?key=${CANARY}#${CANARY}`, {
    cause: new Error(`Bearer ${CANARY}`, { cause: new Error(`GET /v1beta/x?alt=sse&key=${CANARY}&a=1`) }),
  })
  const rows: Record<string, unknown> = {
    'a Secret': new Secret(CANARY),
    'a Secret deep down': { of: [{ channel: { key: new Secret(CANARY) } }] },
    'an error': failed,
    'an error told': describeFault(failed),
    'an error deep down': { of: [{ failed }] },
    'the fields of an error': Object.assign(new Error('refused'), { request: { authorization: CANARY }, path: CANARY }),
    'a stack': failed.stack,
    'a key of ours': `the key wk-${CANARY} is not valid`,
    'a key of theirs': `Incorrect API key provided: sk-proj-${CANARY}.`,
    'a password in an address': `http://${CANARY}@10.0.0.1/`,
    'a password with an at': `http://u:${CANARY}@${CANARY}@host/x`,
    'an address in quotes': `tried "https://h/?token=${CANARY}" twice`,
    'basic credentials': `Proxy-Authorization: Basic ${CANARY}==`,
  }

  test.each(Object.entries(rows))('%s', (_, field) => {
    expect(logged({ field })).not.toContain(CANARY)
  })

  test('the rest of the text stays readable', () => {
    expect(describeFault(failed)).toBe(
      'TypeError: cannot reach https://gate.example:81/v1?[secret] ' +
        '(Error: Bearer [secret] (Error: GET /v1beta/x?alt=sse&key=[secret]&a=1))',
    )
    expect(logged({ address: 'http://[::1]:8080/metrics' })).toContain('"http://[::1]:8080/metrics"')
  })
})

test('fields that cannot be written do not throw, and do not hide the event', () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  expect(JSON.parse(logged({ circle }))).toMatchObject({ event: 'said', fields: 'unreadable' })
  const trap = {
    toJSON() {
      throw new Error('no')
    },
  }
  expect(JSON.parse(logged({ trap }))).toMatchObject({ event: 'said' })
  const loop = new Error('round')
  loop.cause = loop
  expect(describeFault(loop)).toBe('Error: round (Error: round (Error: round (Error: round)))')
})
