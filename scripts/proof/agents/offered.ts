// Reads the tools with their schemas, and the results of tool calls, from a request that an upstream received. It does not
// use the gateway's readers, so that it does not share their mistakes.

import type { Json } from '../../../tools/fake-upstream/body-fields.ts'
import { objectOf, recordOf, recordsOf, stringOf, textsOf } from '../../../tools/fake-upstream/body-fields.ts'
import type { ReceivedRequest } from '../../../tools/fake-upstream/request.ts'

export interface Tool {
  readonly name: string
  readonly schema: Json
}

export interface ToolUse {
  readonly tools: readonly Tool[]
  /** The text of each result, oldest first. */
  readonly results: readonly string[]
}

type Reader = (body: Json) => ToolUse

const tool = (name: unknown, schema: unknown): Tool => ({ name: stringOf(name), schema: recordOf(schema) })
const textOf = (content: unknown): string => textsOf(content).join('\n')

const readChat: Reader = body => ({
  tools: recordsOf(body.tools)
    .map(each => recordOf(each.function))
    .map(each => tool(each.name, each.parameters)),
  results: recordsOf(body.messages)
    .filter(each => each.role === 'tool')
    .map(each => textOf(each.content)),
})

const readResponses: Reader = body => ({
  tools: recordsOf(body.tools)
    .filter(each => each.type === 'function')
    .map(each => tool(each.name, each.parameters)),
  results: recordsOf(body.input)
    .filter(each => each.type === 'function_call_output')
    .map(each => textOf(each.output)),
})

const readMessages: Reader = body => ({
  tools: recordsOf(body.tools).map(each => tool(each.name, each.input_schema)),
  results: recordsOf(body.messages)
    .flatMap(each => recordsOf(each.content))
    .filter(each => each.type === 'tool_result')
    .map(each => textOf(each.content)),
})

const readGemini: Reader = body => ({
  tools: recordsOf(body.tools)
    .flatMap(each => recordsOf(each.functionDeclarations))
    .map(each => tool(each.name, each.parametersJsonSchema ?? each.parameters)),
  results: recordsOf(body.contents)
    .flatMap(each => recordsOf(each.parts))
    .filter(each => each.functionResponse)
    .map(each =>
      Object.values(recordOf(recordOf(each.functionResponse).response))
        .map(asText)
        .join('\n'),
    ),
})

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const readers: Readonly<Record<string, Reader>> = {
  'openai-chat': readChat,
  'ark': readChat,
  'openai-responses': readResponses,
  'anthropic-messages': readMessages,
  'gemini': readGemini,
}

export const toolUseOf = (dialect: string, request: ReceivedRequest): ToolUse => readers[dialect]!(objectOf(request))
