// Reads a request of the OpenAI chat dialect, as far as the fake upstream cares.

import { countWords } from './dialect.ts'
import type { Asked } from './dialect.ts'
import { isRecord, readJson } from './request.ts'
import type { ReceivedRequest } from './request.ts'

export interface ChatRequest extends Asked {
  readonly lastUserText: string
  /** A tool is asked for only by the last message; after its result the talk goes on in words. */
  readonly lastIsUser: boolean
  readonly choices: number
  readonly tools: readonly string[]
  /** Why a real provider would refuse it. */
  readonly problem: ChatProblem | undefined
}

export interface ChatProblem {
  readonly message: string
  readonly param?: string
}

/** Few, because the demo runs on the gateway's own thread. */
const choicesMax = 8

export function readChatRequest(request: ReceivedRequest): ChatRequest {
  const parsed = readJson(request.body)
  const body = isRecord(parsed) ? parsed : {}
  const messages = Array.isArray(body.messages) ? body.messages.filter(isRecord) : []
  const users = messages.filter(message => message.role === 'user')
  const streamOptions = isRecord(body.stream_options) ? body.stream_options : {}
  const outputMax = body.max_completion_tokens ?? body.max_tokens
  return {
    model: typeof body.model === 'string' ? body.model : 'echo',
    stream: body.stream === true,
    usageAsked: streamOptions.include_usage === true,
    promptWords: messages.reduce((sum, message) => sum + countWords(textsOf(message.content).join(' ')), 0),
    outputMax: typeof outputMax === 'number' ? outputMax : undefined,
    lastUserText: textsOf(users.at(-1)?.content).join(''),
    lastIsUser: messages.at(-1)?.role === 'user',
    choices: typeof body.n === 'number' ? body.n : 1,
    tools: body.tool_choice === 'none' ? [] : namesOfTools(body.tools),
    problem: findProblem(parsed),
  }
}

function textsOf(content: unknown): readonly string[] {
  if (typeof content === 'string') return [content]
  if (!Array.isArray(content)) return []
  return content.filter(isRecord).flatMap(part => (typeof part.text === 'string' ? [part.text] : []))
}

function namesOfTools(tools: unknown): readonly string[] {
  if (!Array.isArray(tools)) return []
  return tools
    .filter(isRecord)
    .map(tool => (isRecord(tool.function) ? tool.function.name : undefined))
    .filter(name => typeof name === 'string')
}

function findProblem(body: unknown): ChatProblem | undefined {
  if (body === undefined) return { message: 'We could not parse the JSON body of your request.' }
  if (!isRecord(body)) return { message: 'The request body must be a JSON object.' }
  if (typeof body.model !== 'string') return { message: 'you must provide a model parameter', param: 'model' }
  if (!Array.isArray(body.messages)) return { message: "Missing required parameter: 'messages'.", param: 'messages' }
  if (!isCount(body.n, choicesMax)) return { message: `'n' must be an integer from 1 to ${choicesMax}.`, param: 'n' }
  for (const param of ['max_tokens', 'max_completion_tokens']) {
    if (!isCount(body[param], Number.MAX_SAFE_INTEGER)) {
      return { message: `'${param}' must be a positive integer.`, param }
    }
  }
  return undefined
}

function isCount(value: unknown, max: number): boolean {
  if (value === undefined || value === null) return true
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max
}
