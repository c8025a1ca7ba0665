// The chat dialect of Volcengine Ark: OpenAI's chat without OpenAI's later additions, with thinking as a switch, with
// reasoning state in its messages, and with its own errors.

import { buildCodec } from '../openai-chat/codec.ts'
import { readCacheMs, readConversationStart } from '../openai-chat/conversation-start.ts'
import type { ChatFlavour } from '../openai-chat/flavour.ts'
import { readChatCall, writeChatCall } from '../openai-chat/request.ts'
import { readAnswer } from '../openai-chat/response.ts'
import { readFrame } from '../openai-chat/stream.ts'
import type { Protocol } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import { hasNoOtherThinkingField } from '../request/thinking-fields.ts'
import { writeError } from './errors.ts'

export const arkChat: ChatFlavour = {
  dialect: 'ark',
  carriesReasoningState: true,
  capsVisibleOutput: true,
  hasThinkingSwitch: true,
  hasOpenaiAdditions: false,
  highestDetail: 'xhigh',
  fetchesFiles: true,
  choicesMax: 5,
  serviceClasses: ['auto', 'default', 'fast'],
  servedTiers: ['default', 'scale', 'fast'],
}

/** Headers that enable tools of the provider, and one that says that the messages are encrypted for the provider. */
const PASSED_HEADERS = [
  'ark-beta-web-search',
  'ark-beta-mcp',
  'ark-beta-knowledge-search',
  'ark-beta-doubao-app',
  'ark-beta-image-process',
  'x-is-encrypted',
] as const

export const ark = {
  name: 'ark',
  lastEvent: 'data: [DONE]\n\n',
  // In this dialect `max_tokens` limits only the visible output, while all output is billed.
  capFieldName: 'max_completion_tokens',
  passedHeaders: PASSED_HEADERS,
  readCall: body => readChatCall(body, arkChat),
  writeCall: (call, target) => writeChatCall(call, target, arkChat),
  begins: readConversationStart,
  cacheMs: readCacheMs,
  asksForThinking(json) {
    const isOff = isObject(json.thinking) && json.thinking.type === 'disabled'
    return isOff && hasNoOtherThinkingField(json, 'thinking') ? false : undefined
  },
  readAnswer,
  readFrame,
  writeError,
  codec: buildCodec(arkChat),
} as const satisfies Protocol
