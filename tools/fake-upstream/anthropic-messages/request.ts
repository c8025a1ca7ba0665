// Reads what the fake upstream needs from a request of the Anthropic Messages dialect.

import type { Json } from '../body-fields.ts'
import {
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
import type { Media, RequestSummary } from '../dialect.ts'
import { isIssuedState } from '../reasoning-state.ts'
import type { ReceivedRequest } from '../request.ts'

/** The issuer in reasoning state of this dialect. */
export const stateOwner = 'messages'

export const blocksOf = (message: Json | undefined): readonly Json[] => {
  const content = message?.content
  return typeof content === 'string' ? [{ type: 'text', text: content }] : recordsOf(content)
}

export function readMessagesRequest(request: ReceivedRequest): RequestSummary {
  const body = objectOf(request)
  const messages = recordsOf(body.messages)
  const [last, spoken] = [messages.at(-1), messages.findLast(isSpokenByUser)]
  const choice = recordOf(body.tool_choice)
  const thinking = recordOf(body.thinking)
  return {
    model: typeof body.model === 'string' ? body.model : 'echo',
    stream: body.stream === true,
    wantsUsage: true,
    promptWords: wordsIn(body.system) + messages.reduce((sum, message) => sum + countMessageWords(message), 0),
    outputMax: numberOf(body.max_tokens),
    lastUserText: textsOf(spoken?.content).join(''),
    lastIsUser: last !== undefined && isSpokenByUser(last),
    choices: 1,
    tools: choice.type === 'none' ? [] : listToolNames(body.tools, choice),
    mustCall: choice.type === 'any' || choice.type === 'tool',
    parallel: choice.disable_parallel_tool_use !== true,
    stopSequences: stringsOf(body.stop_sequences),
    wantsJson: recordOf(recordOf(body.output_config).format).type === 'json_schema',
    media: messages.flatMap(message => readMedia(blocksOf(message))),
    thinking: { off: thinking.type === 'disabled', text: thinking.display !== 'omitted', state: true },
    stateKept: findStateKept(messages, request.ordinal),
  }
}

const isSpokenByUser = (message: Json): boolean =>
  message.role === 'user' && blocksOf(message).some(block => block.type !== 'tool_result')

function countMessageWords(message: Json): number {
  return blocksOf(message).reduce(
    (sum, block) => sum + (block.type === 'tool_result' ? wordsIn(block.content) : wordsIn([block])),
    0,
  )
}

/** Lists the tools that the caller runs; tools with a dated type run at the provider. */
function listToolNames(tools: unknown, choice: Json): readonly string[] {
  const own = recordsOf(tools).filter(tool => tool.type === undefined || tool.type === 'custom')
  const names = own.flatMap(tool => stringOf(tool.name) || [])
  return choice.type === 'tool' ? names.filter(name => name === choice.name) : names
}

function readMedia(blocks: readonly Json[]): readonly Media[] {
  return blocks.flatMap(block => {
    if (block.type === 'tool_result') return readMedia(recordsOf(block.content))
    if (block.type !== 'image' && block.type !== 'document') return []
    const source = recordOf(block.source)
    if (source.type === 'base64') return [mediaOfBase64(stringOf(source.media_type), source.data)]
    const bytes = Buffer.byteLength(stringOf(source.data))
    if (source.type === 'text') return [{ type: 'text/plain', bytes, broken: false }]
    return [mediaOfUrl(block.type, source.url)]
  })
}

function findStateKept(messages: readonly Json[], ordinal: number): boolean | undefined {
  if (!blocksOf(messages.at(-1)).some(block => block.type === 'tool_result')) return undefined
  const calling = blocksOf(messages.findLast(message => message.role === 'assistant'))
  return calling.some(block => isIssuedBlock(block, ordinal))
}

/** Whether this upstream issued a block of reasoning, and the block is unchanged. */
export function isIssuedBlock(block: Json, ordinal: number): boolean {
  const looking = { by: stateOwner, ordinal }
  if (block.type === 'redacted_thinking') return isIssuedState(block.data, looking)
  if (block.type !== 'thinking') return false
  // A caller that got no text cannot send it back.
  return isIssuedState(block.signature, looking, stringOf(block.thinking) || undefined)
}
