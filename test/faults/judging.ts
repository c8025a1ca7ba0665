// Judges one cell of the matrix by its verdict: what the caller was told and when, what was written down, who pays,
// and what became of the upstream's socket.

import { expect } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import type { ErrorCode } from '../../src/base/errors.ts'
import { buildErrorReply, Refusal } from '../../src/base/errors.ts'
import { errorDialects } from '../../src/protocols/protocols.ts'
import type { Json, SeenError, Speaker } from '../dialects/speaking.ts'
import { eventsSeen, speech } from '../dialects/speaking.ts'
import { dialects } from '../dialects/upstreams.ts'
import { until } from '../support/gateway.ts'
import type { Cell } from './cells.ts'
import { deadlineMs, eventBytesMax, faultName } from './cells.ts'
import type { Ran } from './gateway.ts'
import { keyOf } from './gateway.ts'
import type { Verdict, VerdictName } from './verdicts.ts'
import { verdictOn, verdicts } from './verdicts.ts'

export interface Judged extends Ran {
  readonly record: Json
}

/** Throws for whatever is not as its verdict says. Gives the verdict. */
export async function judge(judged: Judged): Promise<VerdictName> {
  const { cell, seen, ms } = judged
  const name = verdictOn(cell)!
  const verdict = tolerated(judged, verdicts[name])
  expect(ms).toBeLessThan(deadlineMs + SLACK_MS)
  if (verdict.code === null) expectAnswer(judged)
  else if (verdict.midway && seen.status === 200) expectEvent(judged, verdict.code)
  else expectRefusal(judged, verdict)
  expectRecord(judged, verdict)
  expectCharge(judged, verdict)
  for (const dialect of dialects) expect(seen.head + seen.text).not.toContain(keyOf(dialect))
  expectAttempts(judged, verdict)
  await expectSockets(judged)
  expectBound(judged)
  return name
}

/** After a whole answer whose bytes do not end, two more seconds are given to them. */
const SLACK_MS = 5_000

/**
 * What came in one piece with its end never left us, so it is no answer that broke off; and on a machine that is busy
 * with other things a deadline may come before a bound.
 */
function tolerated({ cell, seen, wasGated }: Judged, verdict: Verdict): Verdict {
  if (verdict.midway && seen.status !== 200 && !wasGated) {
    return verdict.code === 'upstream_too_slow' ? verdicts.slow : verdicts.unusable
  }
  return LARGE.test(faultName(cell.fault)) && seen.status === 504 ? verdicts.slow : verdict
}

/** Nobody wrote anything, and what was read is told only by some. */
const EMPTY = /^(nothing but the terminal event|an answer without text)$/

/** Faults that leave the text as the upstream meant it. */
const HARMLESS = /^F(12|22|28|33)$/

/** A candidate of Gemini's whose number cannot be written in another dialect has that of its place there. */
const isRenumbered = ({ fault, caller, upstream }: Cell): boolean =>
  faultName(fault) === 'F32 a negative choice' && upstream === 'gemini' && !caller.startsWith(upstream)

function expectAnswer({ cell, seen, record }: Judged): void {
  expect(seen.status).toBe(200)
  const { whole, ended } = speech[cell.caller]
  const text = cell.stream ? ended(eventsSeen(cell.caller, seen.body)) : whole(JSON.parse(seen.text) as Json)
  if (HARMLESS.test(cell.fault.id)) expect(text).toMatch(/^Hello( world)?$/)
  if (isRenumbered(cell)) expect(text).toBe('Hello')
  if (!EMPTY.test(cell.fault.name)) expect(Number(record.cost)).toBeGreaterThan(0)
}

/** The dialect's error event, and the legal end of its stream. */
function expectEvent({ cell, seen }: Judged, code: ErrorCode): void {
  const { broken, error } = speech[cell.caller]
  expectWords(error(broken(eventsSeen(cell.caller, seen.body)), statusIn(cell.caller, code)), cell)
}

function expectRefusal({ cell, seen }: Judged, { code }: Verdict): void {
  if (code === 'upstream_refused') expect([400, 404]).toContain(seen.status)
  else expect(seen.status).toBe(statusIn(cell.caller, code!))
  expect(seen.header('content-type')).toStartWith('application/json')
  expect(seen.header('request-id')).toBe(seen.header('x-request-id')!)
  expect(seen.header('x-pipeline-adapter')).toMatch(/^fail \(\d+ms\)$/)
  expectWords(speech[cell.caller].error(JSON.parse(seen.text), seen.status), cell)
  if (code === 'upstream_rate_limited') expectWait(seen)
}

function expectWords({ message, type }: SeenError, { fault }: Cell): void {
  expect(message).not.toBe('')
  expect(type).not.toBe('')
  expect(message).not.toContain(fault.name)
}

function expectWait(seen: Ran['seen']): void {
  const seconds = Number(seen.header('retry-after'))
  expect(seconds).toBeGreaterThanOrEqual(0)
  expect(seconds).toBeLessThanOrEqual(60)
}

/** Some dialects have a status of their own. */
function statusIn(speaker: Speaker, code: ErrorCode): number {
  const dialect = speaker === 'gemini-array' ? 'gemini' : speaker
  return errorDialects[dialect].writeError(buildErrorReply(new Refusal(code, ''), 'req')).status
}

function expectRecord({ seen, record, cell }: Judged, verdict: Verdict): void {
  const { code, outcome } = verdict
  const status = verdict.midway ? record.status : seen.status
  expect(record).toMatchObject({ outcome, error: code, status, streamed: Number(cell.stream) })
  expect(verdict.rules).toContain(record.rule as string)
}

type Attempt = readonly [channel: string, verdict: string, ms: number]

/** What may be otherwise a moment later, so that the only channel there is may be asked again. */
const PASSING = /^(broken|rate_limited)$/

/** Three at most, nothing after content, and the upstream has seen as many. */
function expectAttempts({ cell, record, requests }: Judged, verdict: Verdict): void {
  const attempts = record.attempts as readonly Attempt[]
  expect(attempts.at(-1)![1]).toBe(verdict.attempt)
  for (const [, before] of attempts.slice(0, -1)) expect(before).toMatch(PASSING)
  expect(attempts.length).toBeLessThanOrEqual(bounds.attemptsPerCallMax)
  if (cell.fault.by === 'script') expect(requests.length).toBe(attempts.length)
}

const NANOS = { input: 1_000, cached: 500, output: 2_000 }

/**
 * A failure is free, half an answer of an upstream that failed is charged by nobody's word but the provider's, one that
 * a bound of ours cut by what came of it; and all to the nano-dollar.
 */
function expectCharge({ record }: Judged, { outcome, midway }: Verdict): void {
  const { usage_source: source, input_tokens: input, output_tokens: output } = record
  if (midway && outcome === 'over_bound') {
    expect(['reported', 'estimated']).toContain(source as string)
    expect(Number(output)).toBeGreaterThan(0)
  } else if (midway) expect(['none', 'reported']).toContain(source as string)
  else if (outcome !== 'completed') expect([source, input, output]).toEqual(['none', 0, 0])
  const cached = Number(record.cache_read_tokens)
  // What is cached stands within the input of a record.
  const due = (Number(input) - cached) * NANOS.input + cached * NANOS.cached + Number(output) * NANOS.output
  expect(Number(record.cost) + Number(record.shortfall)).toBe(due)
}

/** Whose framing lies though its script comes to its end. */
const LYING = /^F16 Content-Length (too short|beside chunks)$/

/** A socket is kept for the next call only if its answer ended beyond doubt. */
async function expectSockets({ cell, requests, isEnded }: Judged): Promise<void> {
  if (isEnded && !LYING.test(faultName(cell.fault))) return
  const areClosed = (): boolean => requests.every(({ closedAtMs }) => closedAtMs !== undefined)
  await until(areClosed, 'the sockets of what did not end well are closed')
}

/** Those that are about size. */
export const LARGE = /^F(18 a huge body|20 a gzip bomb|29 )/

const MIB = 1024 * 1024
/** What the kernel takes of what nobody reads, on both ends of a socket. */
const KERNEL_BYTES = 12 * MIB

/** Not more was taken than may be held: a whole answer, or one event of a stream. */
function expectBound({ cell, requests }: Judged): void {
  const [taken, name] = [Math.max(0, ...requests.map(({ bytesWritten }) => bytesWritten)), faultName(cell.fault)]
  if (/^F29/.test(name)) expect(taken).toBeLessThan(eventBytesMax + KERNEL_BYTES)
  if (/^F18 a huge body|^F20 a gzip bomb/.test(name)) expect(taken).toBeLessThan(33 * MIB + KERNEL_BYTES)
}
