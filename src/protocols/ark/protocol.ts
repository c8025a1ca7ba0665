// Volcengine Ark's chat: OpenAI's, without what OpenAI added later, with thinking as a switch, and with the state of
// thoughts in its messages. Its errors are its own.

import { begins, cacheMs } from '../openai-chat/begins.ts'
import { buildCodec } from '../openai-chat/codec.ts'
import type { Flavour } from '../openai-chat/flavour.ts'
import { readChatCall, writeChatCall } from '../openai-chat/request.ts'
import { readAnswer } from '../openai-chat/response.ts'
import { readFrame } from '../openai-chat/stream.ts'
import type { Protocol } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import { nothingElseThinks } from '../request/thinking-off.ts'
import { writeError } from './errors.ts'

export const arkChat: Flavour = {
  dialect: 'ark',
  bearsState: true,
  capsShownAlone: true,
  switchesThinking: true,
  isFull: false,
  closestDetail: 'xhigh',
  fetchesFiles: true,
  choicesMax: 5,
  serviceClasses: ['auto', 'default', 'fast'],
  servedTiers: ['default', 'scale', 'fast'],
}

/** Tools that must be asked for by name, and whether the messages are ciphertext that only the provider can read. */
const PASSES = [
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
  // The other name bounds what is shown, and not what is paid for.
  capName: 'max_completion_tokens',
  passes: PASSES,
  readCall: body => readChatCall(body, arkChat),
  writeCall: (call, target) => writeChatCall(call, target, arkChat),
  begins,
  cacheMs,
  thinks(json) {
    const isOff = isObject(json.thinking) && json.thinking.type === 'disabled'
    return isOff && nothingElseThinks(json, 'thinking') ? false : undefined
  },
  readAnswer,
  readFrame,
  writeError,
  codec: buildCodec(arkChat),
} as const satisfies Protocol
