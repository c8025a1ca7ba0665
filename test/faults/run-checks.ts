// Checks the run of one cell of the matrix against its verdict: the answer and its time, the record, the charge, and the
// sockets of the upstream.

import { expect } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import type { ErrorCode } from '../../src/base/errors.ts'
import { buildErrorReply, Refusal } from '../../src/base/errors.ts'
import { errorDialects } from '../../src/protocols/protocols.ts'
import type { CallerDialect, Json, ParsedError } from '../dialects/raw-callers.ts'
import { eventsOfBody, rawCallers } from '../dialects/raw-callers.ts'
import { dialects } from '../dialects/upstreams.ts'
import { until } from '../support/gateway.ts'
import type { Cell } from './cells.ts'
import { deadlineMs, eventBytesMax, faultName } from './cells.ts'
import type { CellRun } from './gateway.ts'
import { keyOf } from './gateway.ts'
import type { Verdict, VerdictName } from './verdicts.ts'
import { verdictOn, verdicts } from './verdicts.ts'

export interface RecordedRun extends CellRun {
  readonly record: Json
}

/** Throws if anything differs from the verdict of the cell. Returns the name of the verdict. */
export async function checkRun(run: RecordedRun): Promise<VerdictName> {
  const { cell, answer, ms } = run
  const name = verdictOn(cell)!
  const verdict = tolerated(run, verdicts[name])
  expect(ms).toBeLessThan(deadlineMs + SLACK_MS)
  if (verdict.code === null) expectAnswer(run)
  else if (verdict.midway && answer.status === 200) expectEvent(run, verdict.code)
  else expectRefusal(run, verdict)
  expectRecord(run, verdict)
  expectCharge(run, verdict)
  for (const dialect of dialects) expect(answer.head + answer.text).not.toContain(keyOf(dialect))
  expectAttempts(run, verdict)
  await expectSockets(run)
  expectBound(run)
  return name
}

/** The gateway waits two more seconds after a whole answer whose body does not end. */
const SLACK_MS = 5_000

/**
 * A broken answer that arrived in one piece was never sent to the caller, so it failed before content. On a busy machine
 * a deadline may come before a bound.
 */
function tolerated({ cell, answer, wasGated }: RecordedRun, verdict: Verdict): Verdict {
  if (verdict.midway && answer.status !== 200 && !wasGated) {
    return verdict.code === 'upstream_too_slow' ? verdicts.slow : verdicts.unusable
  }
  return LARGE.test(faultName(cell.fault)) && answer.status === 504 ? verdicts.slow : verdict
}

/** Answers without output; only some of them report their input. */
const EMPTY = /^(nothing but the terminal event|an answer without text)$/

/** Faults that leave the text as the upstream meant it. */
const HARMLESS = /^F(12|22|28|33)$/

/** A Gemini candidate whose index another dialect cannot write gets the index of its position. */
const isRenumbered = ({ fault, caller, upstream }: Cell): boolean =>
  faultName(fault) === 'F32 a negative choice' && upstream === 'gemini' && !caller.startsWith(upstream)

function expectAnswer({ cell, answer, record }: RecordedRun): void {
  expect(answer.status).toBe(200)
  const { whole, completed } = rawCallers[cell.caller]
  const text = cell.stream ? completed(eventsOfBody(cell.caller, answer.body)) : whole(JSON.parse(answer.text) as Json)
  if (HARMLESS.test(cell.fault.id)) expect(text).toMatch(/^Hello( world)?$/)
  if (isRenumbered(cell)) expect(text).toBe('Hello')
  if (!EMPTY.test(cell.fault.name)) expect(Number(record.cost)).toBeGreaterThan(0)
}

/** Expects the error event of the dialect and a valid end of its stream. */
function expectEvent({ cell, answer }: RecordedRun, code: ErrorCode): void {
  const { failed: broken, error } = rawCallers[cell.caller]
  expectWords(error(broken(eventsOfBody(cell.caller, answer.body)), statusIn(cell.caller, code)), cell)
}

function expectRefusal({ cell, answer }: RecordedRun, { code }: Verdict): void {
  if (code === 'upstream_refused') expect([400, 404]).toContain(answer.status)
  else expect(answer.status).toBe(statusIn(cell.caller, code!))
  expect(answer.header('content-type')).toStartWith('application/json')
  expect(answer.header('request-id')).toBe(answer.header('x-request-id')!)
  expect(answer.header('x-pipeline-adapter')).toMatch(/^fail \(\d+ms\)$/)
  expectWords(rawCallers[cell.caller].error(JSON.parse(answer.text), answer.status), cell)
  if (code === 'upstream_rate_limited') expectWait(answer)
}

function expectWords({ message, type }: ParsedError, { fault }: Cell): void {
  expect(message).not.toBe('')
  expect(type).not.toBe('')
  expect(message).not.toContain(fault.name)
}

function expectWait(answer: CellRun['answer']): void {
  const seconds = Number(answer.header('retry-after'))
  expect(seconds).toBeGreaterThanOrEqual(0)
  expect(seconds).toBeLessThanOrEqual(60)
}

/** The status of an error in a dialect; some dialects have statuses of their own. */
function statusIn(speaker: CallerDialect, code: ErrorCode): number {
  const dialect = speaker === 'gemini-array' ? 'gemini' : speaker
  return errorDialects[dialect].writeError(buildErrorReply(new Refusal(code, ''), 'req')).status
}

function expectRecord({ answer, record, cell }: RecordedRun, verdict: Verdict): void {
  const { code, outcome } = verdict
  const status = verdict.midway ? record.status : answer.status
  expect(record).toMatchObject({ outcome, error: code, status, streamed: Number(cell.stream) })
  expect(verdict.rules).toContain(record.rule as string)
}

type Attempt = readonly [channel: string, verdict: string, ms: number]

/** Verdicts that may pass, so that the same channel is tried again if there is no other. */
const TRANSIENT = /^(broken|rate_limited)$/

/** Expects at most three attempts, none after content, and as many requests at the upstream. */
function expectAttempts({ cell, record, requests }: RecordedRun, verdict: Verdict): void {
  const attempts = record.attempts as readonly Attempt[]
  expect(attempts.at(-1)![1]).toBe(verdict.attempt)
  for (const [, before] of attempts.slice(0, -1)) expect(before).toMatch(TRANSIENT)
  expect(attempts.length).toBeLessThanOrEqual(bounds.attemptsPerCallMax)
  if (cell.fault.by === 'script') expect(requests.length).toBe(attempts.length)
}

const NANOS = { input: 1_000, cached: 500, output: 2_000 }

/**
 * A failure is free. Part of an answer of a failed upstream is charged only as the provider reports it; one that a bound of
 * the gateway cut is charged by what was received. All to the nano-dollar.
 */
function expectCharge({ record }: RecordedRun, { outcome, midway }: Verdict): void {
  const { usage_source: source, input_tokens: input, output_tokens: output } = record
  if (midway && outcome === 'over_bound') {
    expect(['reported', 'estimated']).toContain(source as string)
    expect(Number(output)).toBeGreaterThan(0)
  } else if (midway) expect(['none', 'reported']).toContain(source as string)
  else if (outcome !== 'completed') expect([source, input, output]).toEqual(['none', 0, 0])
  const cached = Number(record.cache_read_tokens)
  // The input tokens of a record include the cached ones.
  const due = (Number(input) - cached) * NANOS.input + cached * NANOS.cached + Number(output) * NANOS.output
  expect(Number(record.cost) + Number(record.shortfall)).toBe(due)
}

/** Faults with wrong framing whose script comes to its end. */
const WRONG_FRAMING = /^F16 Content-Length (too short|beside chunks)$/

/** A socket may be reused only if its answer certainly ended. */
async function expectSockets({ cell, requests, isEnded }: RecordedRun): Promise<void> {
  if (isEnded && !WRONG_FRAMING.test(faultName(cell.fault))) return
  const areClosed = (): boolean => requests.every(({ closedAtMs }) => closedAtMs !== undefined)
  await until(areClosed, 'the sockets of broken answers are closed')
}

/** Faults of size. */
export const LARGE = /^F(18 a huge body|20 a gzip bomb|29 )/

const MIB = 1024 * 1024
/** The kernel buffers of both ends of a socket. */
const KERNEL_BYTES = 12 * MIB

/** The gateway read no more than its bound: a whole answer, or one event of a stream. */
function expectBound({ cell, requests }: RecordedRun): void {
  const [taken, name] = [Math.max(0, ...requests.map(({ bytesWritten }) => bytesWritten)), faultName(cell.fault)]
  if (/^F29/.test(name)) expect(taken).toBeLessThan(eventBytesMax + KERNEL_BYTES)
  if (/^F18 a huge body|^F20 a gzip bomb/.test(name)) expect(taken).toBeLessThan(33 * MIB + KERNEL_BYTES)
}
