// What the fake upstream answers when nothing was planned: a small provider that speaks every dialect on one port, each
// on its own paths, and is as strict as the real ones. The models are in demo-models.ts.

import { frameSteps, jsonAnswer, streamHead } from './answers.ts'
import { findCountProblem } from './anthropic-messages/problem.ts'
import { answerContext, answerTokenization, Files } from './ark/small.ts'
import { Tasks } from './ark/tasks.ts'
import { replyOf } from './demo-models.ts'
import type { Asked, Dialect, Problem, Reply } from './dialect.ts'
import { dialectOf } from './dialects.ts'
import { asksForEvents, readGeminiRequest, wordsOfContents } from './gemini/request.ts'
import { answerModels } from './models-list.ts'
import { compact, countInput, Responses } from './openai-responses/stored.ts'
import { answerSpeech, answerTranscription } from './openai-side/audio.ts'
import { answerEmbedContent, answerEmbeddings, answerMultimodal } from './openai-side/embeddings.ts'
import { answerArkImages, answerEdits, answerGenerations } from './openai-side/images.ts'
import { answerCompletions, answerModerations, answerRerank } from './openai-side/texts.ts'
import { objectOf, pathOf, recordOf, recordsOf } from './reading.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, Step } from './script.ts'
import { chunk, end, head, script, scripted, wait } from './script.ts'
import { shaped, waitBetween } from './shapes.ts'

const slowChunkMs = 50
const slowAnswerMs = 500

type Refuse = (problem: Problem) => Script

/** What an answer may need beside the request. */
interface Kit {
  readonly dialect: Dialect
  readonly refuse: Refuse
}

type Handler = (request: ReceivedRequest, kit: Kit) => Script | undefined

const json = (body: object): Script => script(...jsonAnswer(200, JSON.stringify(body)))

/** Takes the refusal alone. */
const plainly =
  (answer: (request: ReceivedRequest, refuse: Refuse) => Script): Handler =>
  (request, { refuse }) =>
    answer(request, refuse)

function countMessages(request: ReceivedRequest, { dialect, refuse }: Kit): Script {
  const problem = findCountProblem(request)
  return problem ? refuse(problem) : json({ input_tokens: dialect.read(request).promptWords })
}

function countGemini(request: ReceivedRequest): Script {
  const body = objectOf(request)
  const whole = recordOf(body.generateContentRequest ?? body.generate_content_request)
  const inside = wordsOfContents([...recordsOf(whole.contents), recordOf(whole.systemInstruction)])
  return json({ totalTokens: readGeminiRequest(request).promptWords + inside })
}

function generate(request: ReceivedRequest, { dialect }: Kit): Script {
  const inList = dialect.name === 'gemini' && dialect.read(request).stream && !asksForEvents(request)
  const problem = dialect.problem(request)
  if (problem) return refuseIn(inList ? inListed(dialect) : dialect, problem)
  const asked = dialect.read(request)
  return speak(dialect, asked, { reply: replyOf(asked, request.ordinal), inList })
}

/** Errors of a stream that is a list come in a list. */
const inListed = (dialect: Dialect): Dialect => ({ ...dialect, error: error => `[${dialect.error(error)}]` })

function refuseIn(dialect: Dialect, problem: Problem): Script {
  const { status = 400, ...error } = problem
  return script(...jsonAnswer(status, dialect.error({ type: 'invalid_request_error', status, ...error })))
}

/** The reply, whole or as a stream, at the pace of the model. */
function speak(dialect: Dialect, asked: Asked, given: { reply: Reply; inList?: boolean }): Script {
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

/** The answers of one server, with what it remembers. */
export class DefaultAnswers {
  readonly #responses = new Responses()
  readonly #tasks = new Tasks()
  readonly #files = new Files()
  readonly #routes: readonly (readonly [asks: RegExp, handler: Handler])[]

  constructor() {
    const responses: Handler = (request, kit) => this.#responses.create(request, this.#speaking(kit))
    const kept: Handler = (request, kit) => this.#responses.answer(request, this.#speaking(kit))
    const tasks = plainly((request, refuse) => this.#tasks.answer(request, refuse))
    const files = plainly((request, refuse) => this.#files.answer(request, refuse))
    // The first that fits answers. Ark stands before those whose paths end alike.
    this.#routes = [
      [/^POST .*\/(chat\/completions|messages)$/, generate],
      [/^POST .*:(generateContent|streamGenerateContent)$/, generate],
      [/^POST .*\/responses$/, responses],
      [/^POST .*\/responses\/input_tokens$/, countInput],
      [/^POST .*\/responses\/compact$/, compact],
      [/^(GET|DELETE|POST) .*\/responses\/[^/]+(\/(cancel|input_items))?$/, kept],
      [/^POST .*\/messages\/count_tokens$/, countMessages],
      [/^POST .*:countTokens$/, countGemini],
      [/^POST .*:(embedContent|batchEmbedContents)$/, plainly(answerEmbedContent)],
      [/^POST .*\/api\/v3\/embeddings\/multimodal$/, plainly(answerMultimodal)],
      [/^POST .*\/api\/v3\/images\/generations$/, plainly(answerArkImages)],
      [/^(GET|POST|DELETE) .*\/api\/v3\/contents\/generations\/tasks(\/[^/]+)?$/, tasks],
      [/^(GET|POST|DELETE) .*\/api\/v3\/files(\/[^/]+)?$/, files],
      [/^POST .*\/api\/v3\/tokenization$/, plainly(answerTokenization)],
      [/^POST .*\/api\/v3\/context\/create$/, plainly(answerContext)],
      [/^POST .*\/embeddings$/, plainly(answerEmbeddings)],
      [/^POST .*\/images\/generations$/, plainly(answerGenerations)],
      [/^POST .*\/images\/edits$/, plainly(answerEdits)],
      [/^POST .*\/audio\/speech$/, plainly(answerSpeech)],
      [/^POST .*\/audio\/transcriptions$/, plainly(answerTranscription)],
      [/^POST .*\/completions$/, plainly(answerCompletions)],
      [/^POST .*\/moderations$/, plainly(answerModerations)],
      [/^POST .*\/rerank$/, plainly(answerRerank)],
      [/^GET .*\/models(\/.+)?$/, (request, { dialect }) => answerModels(request, dialect)],
    ]
  }

  answer(request: ReceivedRequest): Script {
    const [path, dialect] = [pathOf(request), dialectOf(request)]
    const refuse: Refuse = problem => refuseIn(dialect, problem)
    const asks = `${request.method} ${path}`
    const [, handler] = this.#routes.find(([pattern]) => pattern.test(asks)) ?? []
    const answered = handler?.(request, { dialect, refuse })
    const message = `Unknown request URL: ${asks}.`
    return answered ?? refuse({ status: 404, message, code: 'unknown_url' })
  }

  #speaking({ dialect, refuse }: Kit) {
    return { dialect, refuse, speak: (asked: Asked, reply: Reply) => speak(dialect, asked, { reply }) }
  }
}
