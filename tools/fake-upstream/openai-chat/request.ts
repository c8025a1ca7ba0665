// Reads what the fake upstream needs from a request of the OpenAI chat dialect and of similar dialects.

import type { Json } from '../body-fields.ts'
import {
  bodyOf,
  has,
  isCount,
  listOf,
  mediaOfBase64,
  mediaOfUrl,
  numberOf,
  objectOf,
  recordOf,
  recordsOf,
  stringOf,
  stringsOf,
  textsOf,
  wordsIn,
} from '../body-fields.ts'
import type { Media, Problem, RequestSummary } from '../dialect.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'

/** A small number, because the demo runs in the gateway's thread. */
export const choicesMax = 8

export function readChatRequest(request: ReceivedRequest): RequestSummary {
  const body = objectOf(request)
  const messages = recordsOf(body.messages)
  const users = messages.filter(message => message.role === 'user')
  const choice = body.tool_choice
  const outputMax = body.max_completion_tokens ?? body.max_tokens
  return {
    model: typeof body.model === 'string' ? body.model : 'echo',
    stream: body.stream === true,
    wantsUsage: recordOf(body.stream_options).include_usage === true,
    promptWords: messages.reduce((sum, message) => sum + wordsIn(message.content), 0),
    outputMax: numberOf(outputMax),
    lastUserText: textsOf(users.at(-1)?.content).join(''),
    lastIsUser: messages.at(-1)?.role === 'user',
    choices: typeof body.n === 'number' ? body.n : 1,
    tools: choice === 'none' ? [] : namesOfTools(body.tools, choice),
    mustCall: choice === 'required' || (isRecord(choice) && choice.type === 'function'),
    parallel: body.parallel_tool_calls !== false,
    stopSequences: typeof body.stop === 'string' ? [body.stop] : stringsOf(body.stop),
    wantsJson: /^json_/.test(stringOf(recordOf(body.response_format).type)),
    media: messages.flatMap(message => mediaOf(message.content)),
    thinking: thinkingOf(body),
    stateKept: stateKept(messages, message => has(message.reasoning_content)),
  }
}

function thinkingOf(body: Json): RequestSummary['thinking'] {
  const off = body.reasoning_effort === 'none' || recordOf(body.thinking).type === 'disabled'
  return { off, text: true, state: true }
}

/** Whether the message with the calls that were just answered still has the state that the model sent with them. */
export function stateKept(messages: readonly Json[], isKept: (message: Json) => boolean): boolean | undefined {
  if (messages.at(-1)?.role !== 'tool') return undefined
  const calling = messages.findLast(message => message.role === 'assistant')
  return calling && isKept(calling)
}

export function mediaOf(content: unknown): readonly Media[] {
  return recordsOf(content).flatMap(part => {
    if (part.type === 'image_url') return [mediaOfUrl('image', recordOf(part.image_url).url)]
    if (part.type === 'video_url') return [mediaOfUrl('video', recordOf(part.video_url).url)]
    if (part.type === 'input_audio') {
      const { data, format } = recordOf(part.input_audio)
      return [mediaOfBase64(`audio/${stringOf(format)}`, data)]
    }
    if (part.type === 'file') return [mediaOfUrl('file', recordOf(part.file).file_data)]
    return []
  })
}

/** Lists the tools, or only the tool that the request chooses by name. */
function namesOfTools(tools: unknown, choice: unknown): readonly string[] {
  const names = recordsOf(tools).flatMap(tool => stringOf(recordOf(tool.function).name) || [])
  const wanted = recordOf(recordOf(choice).function).name
  return typeof wanted === 'string' ? names.filter(name => name === wanted) : names
}

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

export function findChatProblem(request: ReceivedRequest): Problem | undefined {
  const body = bodyOf(request)
  if (body === undefined) return { message: 'We could not parse the JSON body of your request.' }
  if (!isRecord(body)) return { message: 'The request body must be a JSON object.' }
  return findFieldProblem(body) ?? findMessageProblem(recordsOf(body.messages), roles) ?? findFormatProblem(body)
}

function findFormatProblem(body: Json): Problem | undefined {
  if (recordOf(body.response_format).type !== 'json_object') return undefined
  if (recordsOf(body.messages).some(({ content }) => textsOf(content).some(text => /json/i.test(text))))
    return undefined
  const rule = "must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
  return { message: `'messages' ${rule}`, param: 'messages' }
}

export function findFieldProblem(body: Json): Problem | undefined {
  if (typeof body.model !== 'string') return { message: 'you must provide a model parameter', param: 'model' }
  if (!Array.isArray(body.messages)) return { message: "Missing required parameter: 'messages'.", param: 'messages' }
  if (!isCount(body.n, choicesMax)) return { message: `'n' must be an integer from 1 to ${choicesMax}.`, param: 'n' }
  for (const param of ['max_tokens', 'max_completion_tokens']) {
    if (!isCount(body[param], Number.MAX_SAFE_INTEGER)) {
      return { message: `'${param}' must be a positive integer.`, param }
    }
  }
  for (const [at, tool] of recordsOf(body.tools).entries()) {
    const param = `tools[${at}].function`
    if (tool.type === 'function' && !isRecord(tool.function)) {
      return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' }
    }
  }
  return undefined
}

/** The messages right after a call must be its results, and results must not be anywhere else. */
export function findMessageProblem(messages: readonly Json[], known: readonly string[]): Problem | undefined {
  let open = new Set<string>()
  for (const [at, message] of messages.entries()) {
    const param = `messages.[${at}]`
    const role = stringOf(message.role)
    if (!known.includes(role)) {
      const message = `Invalid value: '${role}'. Supported values are: ${known.map(name => `'${name}'`).join(', ')}.`
      return { message, param: `${param}.role`, code: 'invalid_value' }
    }
    if (role === 'tool') {
      if (open.delete(stringOf(message.tool_call_id))) continue
      const detail = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
      return { message: `Invalid parameter: ${detail}`, param: `${param}.role` }
    }
    if (open.size > 0) return unanswered(open, param)
    const problem = findContentProblem(message, param)
    if (problem) return problem
    open = new Set(recordsOf(message.tool_calls).map(call => stringOf(call.id)))
  }
  return open.size > 0 ? unanswered(open, `messages.[${messages.length - 1}]`) : undefined
}

function unanswered(open: ReadonlySet<string>, param: string): Problem {
  const ids = [...open].slice(0, 8).join(', ')
  const rule = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
  const detail = `The following tool_call_ids did not have response messages: ${ids}`
  return { message: `${rule} 'tool_call_id'. ${detail}`, param }
}

const partTypes = ['text', 'refusal', 'image_url', 'input_audio', 'file', 'video_url']

function findContentProblem(message: Json, param: string): Problem | undefined {
  for (const [at, part] of listOf(message.content).entries()) {
    const type = stringOf(recordOf(part).type)
    const where = `${param}.content[${at}].type`
    if (!partTypes.includes(type)) return { message: `Invalid value: '${type}'.`, param: where, code: 'invalid_value' }
  }
  if (mediaOf(message.content).some(media => media.broken)) {
    return { message: 'Invalid base64 data in the content.', param: `${param}.content`, code: 'invalid_base64' }
  }
  for (const call of recordsOf(message.tool_calls)) {
    const given = call.type === 'custom' ? recordOf(call.custom).input : recordOf(call.function).arguments
    if (typeof given !== 'string') return { message: 'The arguments of a call must be a string.', param }
  }
  return undefined
}
