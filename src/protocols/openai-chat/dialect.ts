// The dialect of OpenAI's Chat Completions.

import type { Protocol } from '../protocol.ts'
import { hasNoOtherThinkingField } from '../request/thinking-fields.ts'
import { buildCodec } from './codec.ts'
import { readCacheMs, readConversationStart } from './conversation-start.ts'
import { writeError } from './errors.ts'
import { openaiChatFlavour as flavour } from './flavour.ts'
import { readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'

export const openaiChat = {
  name: 'openai-chat',
  lastEvent: 'data: [DONE]\n\n',
  readCall,
  writeCall,
  begins: readConversationStart,
  cacheMs: readCacheMs,
  asksForThinking: json =>
    json.reasoning_effort === 'none' && hasNoOtherThinkingField(json, 'reasoning_effort') ? false : undefined,
  readAnswer,
  readFrame,
  writeError,
  codec: buildCodec(flavour),
} as const satisfies Protocol
