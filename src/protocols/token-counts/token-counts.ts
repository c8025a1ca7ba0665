// The table of dialects that can count tokens.

import { writeCountConversation as writeMessagesConversation } from '../anthropic-messages/conversation-writer.ts'
import { readCount, readCountCall, writeCall, writeCount } from '../anthropic-messages/request.ts'
import { textsOf, tokenization, writeTokenization } from '../ark-passthrough/reading.ts'
import {
  readCountCall as readGeminiCall,
  readCount as readGeminiCount,
  writeCountCall as writeGeminiCall,
  writeCountConversation as writeGeminiConversation,
  writeCount as writeGeminiCount,
} from '../gemini/count-tokens.ts'
import { protocols } from '../list.ts'
import { openaiFlavour } from '../openai-responses/flavour.ts'
import { inputTokensBody, readInputTokens } from '../openai-responses/state.ts'
import { writeCountConversation as writeResponsesConversation } from '../openai-responses/write-conversation.ts'
import { isObject } from '../request/json-object.ts'
import type { CountDialect } from './token-count.ts'
import { parsed } from './token-count.ts'

const { 'anthropic-messages': anthropic, 'openai-responses': responses, gemini } = protocols

export const countDialects = {
  'anthropic-messages': {
    protocol: anthropic,
    codec: anthropic.codec,
    readCall: readCountCall,
    writeCall,
    writeConversation: writeMessagesConversation,
    readCount: body => readCount(parsed(body)),
    writeCounts: ([count = 0]) => writeCount(count),
  },
  'openai-responses': {
    protocol: responses,
    codec: responses.codec,
    readCall: responses.readCall,
    writeCall: responses.writeCall,
    writeConversation: (conversation, target) =>
      writeResponsesConversation(conversation, { flavour: openaiFlavour, target }),
    readCount: body => readInputTokens(parsed(body)),
    writeCounts: ([count = 0]) => inputTokensBody(count),
  },
  'gemini': {
    protocol: gemini,
    codec: gemini.codec,
    readCall: readGeminiCall,
    writeCall: (call, target) => Buffer.from(writeGeminiCall(call, target)),
    writeConversation: writeGeminiConversation,
    readCount: readGeminiCount,
    writeCounts: ([tokens = 0]) => writeGeminiCount({ tokens }),
  },
  'ark-tokenization': {
    protocol: tokenization,
    readCall: tokenization.readCall,
    writeCall: tokenization.writeCall,
    readCount(body) {
      const answer = parsed(body)
      return isObject(answer) && Array.isArray(answer.data) ? answer.data.length : undefined
    },
    writeCounts: writeTokenization,
    texts: textsOf,
  },
} as const satisfies Record<string, CountDialect>

export const countDialectNamed = (name: string): CountDialect | undefined =>
  Object.hasOwn(countDialects, name) ? countDialects[name as keyof typeof countDialects] : undefined
