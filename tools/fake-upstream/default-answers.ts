// The answers of the fake upstream if no script is planned: a small provider that speaks every dialect on one port, each
// on its own paths, and is as strict as the real ones. Its models are in demo-models.ts.

import { frameSteps, jsonAnswer, streamHead } from './answers.ts'
import { findCountProblem } from './anthropic-messages/problem.ts'
import { answerContext, answerTokenization, Files } from './ark/small.ts'
import { Tasks } from './ark/tasks.ts'
import { objectOf, pathOf, recordOf, recordsOf } from './body-fields.ts'
import { buildReply } from './demo-models.ts'
import type { Dialect, Problem, Reply, RequestSummary } from './dialect.ts'
import { findDialect } from './dialects.ts'
import { asksForEvents, countContentWords, readGeminiRequest } from './gemini/request.ts'
import { answerModels } from './models-list.ts'
import { answerSpeech, answerTranscription } from './openai-passthrough/audio.ts'
import { answerEmbedContent, answerEmbeddings, answerMultimodal } from './openai-passthrough/embeddings.ts'
import { answerArkImages, answerEdits, answerGenerations } from './openai-passthrough/images.ts'
import { answerCompletions, answerModerations, answerRerank } from './openai-passthrough/texts.ts'
import { compact, countInput, Responses } from './openai-responses/stored.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, Step } from './script.ts'
import { chunk, end, head, script, scripted, wait } from './script.ts'
import { shaped, waitBetween } from './script-changes.ts'

const SLOW_CHUNK_MS = 50
const SLOW_ANSWER_MS = 500

type Refuse = (problem: Problem) => Script

/** What a handler may need besides the request. */
interface HandlerContext {
  readonly dialect: Dialect
  readonly refuse: Refuse
}

type Handler = (request: ReceivedRequest, context: HandlerContext) => Script | undefined

const json = (body: object): Script => script(...jsonAnswer(200, JSON.stringify(body)))

/** Makes a handler of a function that needs only the refusal. */
const withRefuse =
  (answer: (request: ReceivedRequest, refuse: Refuse) => Script): Handler =>
  (request, { refuse }) =>
    answer(request, refuse)

function countMessages(request: ReceivedRequest, { dialect, refuse }: HandlerContext): Script {
  const problem = findCountProblem(request)
  return problem ? refuse(problem) : json({ input_tokens: dialect.read(request).promptWords })
}

function countGemini(request: ReceivedRequest): Script {
  const body = objectOf(request)
  const whole = recordOf(body.generateContentRequest ?? body.generate_content_request)
  const inside = countContentWords([...recordsOf(whole.contents), recordOf(whole.systemInstruction)])
  return json({ totalTokens: readGeminiRequest(request).promptWords + inside })
}

function generate(request: ReceivedRequest, { dialect }: HandlerContext): Script {
  const asList = dialect.name === 'gemini' && dialect.read(request).stream && !asksForEvents(request)
  const problem = dialect.problem(request)
  if (problem) return writeRefusal(asList ? wrapErrors(dialect) : dialect, problem)
  const asked = dialect.read(request)
  return writeReply(dialect, asked, buildReply(asked, request.ordinal), asList)
}

/** If a stream is one JSON list, its errors are in a list, too. */
const wrapErrors = (dialect: Dialect): Dialect => ({ ...dialect, error: error => `[${dialect.error(error)}]` })

function writeRefusal(dialect: Dialect, problem: Problem): Script {
  const { status = 400, ...error } = problem
  return script(...jsonAnswer(status, dialect.error({ type: 'invalid_request_error', status, ...error })))
}

/** Writes the reply, whole or as a stream, at the speed of the model. */
function writeReply(dialect: Dialect, asked: RequestSummary, reply: Reply, asList = false): Script {
  const isSlow = asked.model === 'slow'
  if (!asked.stream) {
    return scripted(function* whole(): Iterable<Step> {
      if (isSlow) yield wait(SLOW_ANSWER_MS)
      yield* jsonAnswer(200, dialect.plain(reply))
    })
  }
  const stream = scripted(function* stream(): Iterable<Step> {
    yield asList ? LIST_HEAD : streamHead
    yield* asList ? listSteps(dialect, reply) : frameSteps(dialect.frames(reply))
    yield end
  })
  return isSlow ? shaped(stream, waitBetween(SLOW_CHUNK_MS)) : stream
}

const LIST_HEAD = head(200, { 'content-type': 'application/json; charset=UTF-8', 'transfer-encoding': 'chunked' })

/** Writes one JSON list, element by element. */
function* listSteps(dialect: Dialect, reply: Reply): Iterable<Step> {
  let before = '['
  for (const frame of dialect.frames(reply)) {
    yield chunk(before + frame.data)
    before = '\n,\r\n'
  }
  yield chunk('\n]')
}

/** The default answers of one server, with its stored responses, tasks and files. */
export class DefaultAnswers {
  readonly #responses = new Responses()
  readonly #tasks = new Tasks()
  readonly #files = new Files()
  readonly #routes: readonly (readonly [endpoint: RegExp, handler: Handler])[]

  constructor() {
    const responses: Handler = (request, context) => this.#responses.create(request, this.#responseContext(context))
    const stored: Handler = (request, context) => this.#responses.answer(request, this.#responseContext(context))
    const tasks = withRefuse((request, refuse) => this.#tasks.answer(request, refuse))
    const files = withRefuse((request, refuse) => this.#files.answer(request, refuse))
    // The first match answers. Ark's paths come before others with the same ending.
    this.#routes = [
      [/^POST .*\/(chat\/completions|messages)$/, generate],
      [/^POST .*:(generateContent|streamGenerateContent)$/, generate],
      [/^POST .*\/responses$/, responses],
      [/^POST .*\/responses\/input_tokens$/, countInput],
      [/^POST .*\/responses\/compact$/, compact],
      [/^(GET|DELETE|POST) .*\/responses\/[^/]+(\/(cancel|input_items))?$/, stored],
      [/^POST .*\/messages\/count_tokens$/, countMessages],
      [/^POST .*:countTokens$/, countGemini],
      [/^POST .*:(embedContent|batchEmbedContents)$/, withRefuse(answerEmbedContent)],
      [/^POST .*\/api\/v3\/embeddings\/multimodal$/, withRefuse(answerMultimodal)],
      [/^POST .*\/api\/v3\/images\/generations$/, withRefuse(answerArkImages)],
      [/^(GET|POST|DELETE) .*\/api\/v3\/contents\/generations\/tasks(\/[^/]+)?$/, tasks],
      [/^(GET|POST|DELETE) .*\/api\/v3\/files(\/[^/]+)?$/, files],
      [/^POST .*\/api\/v3\/tokenization$/, withRefuse(answerTokenization)],
      [/^POST .*\/api\/v3\/context\/create$/, withRefuse(answerContext)],
      [/^POST .*\/embeddings$/, withRefuse(answerEmbeddings)],
      [/^POST .*\/images\/generations$/, withRefuse(answerGenerations)],
      [/^POST .*\/images\/edits$/, withRefuse(answerEdits)],
      [/^POST .*\/audio\/speech$/, withRefuse(answerSpeech)],
      [/^POST .*\/audio\/transcriptions$/, withRefuse(answerTranscription)],
      [/^POST .*\/completions$/, withRefuse(answerCompletions)],
      [/^POST .*\/moderations$/, withRefuse(answerModerations)],
      [/^POST .*\/rerank$/, withRefuse(answerRerank)],
      [/^GET .*\/models(\/.+)?$/, (request, { dialect }) => answerModels(request, dialect)],
    ]
  }

  answer(request: ReceivedRequest): Script {
    const [path, dialect] = [pathOf(request), findDialect(request)]
    const refuse: Refuse = problem => writeRefusal(dialect, problem)
    const endpoint = `${request.method} ${path}`
    const [, handler] = this.#routes.find(([pattern]) => pattern.test(endpoint)) ?? []
    const answer = handler?.(request, { dialect, refuse })
    const message = `Unknown request URL: ${endpoint}.`
    return answer ?? refuse({ status: 404, message, code: 'unknown_url' })
  }

  #responseContext({ dialect, refuse }: HandlerContext) {
    return { dialect, refuse, speak: (asked: RequestSummary, reply: Reply) => writeReply(dialect, asked, reply) }
  }
}
