// What the fake upstream answers when nothing was planned: a small provider that speaks every dialect on one port, each
// on its own paths, and is as strict as the real ones.

import { frameSteps, jsonAnswer, streamHead } from './answers.ts'
import { modelIds, replyOf } from './demo-models.ts'
import { createdS } from './dialect.ts'
import type { Asked, Dialect, Problem, Reply } from './dialect.ts'
import { dialectOf } from './dialects.ts'
import { asksForEvents } from './gemini/request.ts'
import { pathOf } from './reading.ts'
import type { ReceivedRequest } from './request.ts'
import { chunk, end, head, script, scripted, wait } from './script.ts'
import type { Script, Step } from './script.ts'
import { shaped, waitBetween } from './shapes.ts'

const slowChunkMs = 50
const slowAnswerMs = 500

const generates = /\/(chat\/completions|responses|messages)$|:(generateContent|streamGenerateContent)$/

export function answerByDefault(request: ReceivedRequest): Script {
  const [path, dialect] = [pathOf(request), dialectOf(request)]
  if (request.method === 'POST' && generates.test(path)) return generate(dialect, request)
  if (request.method === 'GET' && path.endsWith('/models')) return script(...jsonAnswer(200, listOfModels()))
  const message = `Unknown request URL: ${request.method} ${path}.`
  return refuse(dialect, { status: 404, message, code: 'unknown_url' })
}

export function refuse(dialect: Dialect, problem: Problem): Script {
  const { status = 400, ...error } = problem
  const said = { type: 'invalid_request_error', status, ...error }
  return script(...jsonAnswer(status, dialect.error(said)))
}

function listOfModels(): string {
  const data = modelIds.map(id => ({ id, object: 'model', created: createdS, owned_by: 'fake-upstream' }))
  return JSON.stringify({ object: 'list', data })
}

function generate(dialect: Dialect, request: ReceivedRequest): Script {
  const inList = dialect.name === 'gemini' && dialect.read(request).stream && !asksForEvents(request)
  const problem = dialect.problem(request)
  if (problem) return refuse(inList ? inListed(dialect) : dialect, problem)
  const asked = dialect.read(request)
  return speak(dialect, asked, { reply: replyOf(asked, request.ordinal), inList })
}

/** Errors of a stream that is a list come in a list. */
const inListed = (dialect: Dialect): Dialect => ({ ...dialect, error: error => `[${dialect.error(error)}]` })

/** The reply, whole or as a stream, at the pace of the model. */
export function speak(dialect: Dialect, asked: Asked, given: { reply: Reply; inList?: boolean }): Script {
  const slow = asked.model === 'slow'
  const { reply, inList = false } = given
  if (!asked.stream) {
    return scripted(function* whole(): Iterable<Step> {
      if (slow) yield wait(slowAnswerMs)
      yield* jsonAnswer(200, dialect.plain(reply))
    })
  }
  const stream = scripted(function* stream(): Iterable<Step> {
    yield inList ? listHead : streamHead
    yield* inList ? listSteps(dialect, reply) : frameSteps(dialect.frames(reply))
    yield end
  })
  return slow ? shaped(stream, waitBetween(slowChunkMs)) : stream
}

const listHead = head(200, { 'content-type': 'application/json; charset=UTF-8', 'transfer-encoding': 'chunked' })

/** One JSON list, written element by element. */
function* listSteps(dialect: Dialect, reply: Reply): Iterable<Step> {
  let before = '['
  for (const frame of dialect.frames(reply)) {
    yield chunk(before + frame.data)
    before = '\n,\r\n'
  }
  yield chunk('\n]')
}
