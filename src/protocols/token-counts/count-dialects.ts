// The table of dialects that can count tokens.

import { readCount, readCountCall, writeCall, writeCount } from '../anthropic-messages/request.ts'
import { writeCountConversation as writeMessagesConversation } from '../anthropic-messages/write-conversation.ts'
import { readTexts, tokenization, writeTokenization } from '../ark-passthrough/input-only.ts'
import {
  readCountCall as readGeminiCall,
  readCount as readGeminiCount,
  writeCountCall as writeGeminiCall,
  writeCountConversation as writeGeminiConversation,
  writeCount as writeGeminiCount,
} from '../gemini/token-count.ts'
import { openaiFlavour } from '../openai-responses/flavour.ts'
import { readInputTokens, writeInputTokens } from '../openai-responses/stored-responses.ts'
import { writeCountConversation as writeResponsesConversation } from '../openai-responses/write-conversation.ts'
import { protocols } from '../protocols.ts'
import { isObject, parseUpstreamJson } from '../request/json-body.ts'
import type { TokenCountDialect } from './count-dialect.ts'

const { 'anthropic-messages': anthropic, 'openai-responses': responses, gemini } = protocols

export const tokenCountDialects = {
  'anthropic-messages': {
    protocol: anthropic,
    codec: anthropic.codec,
    readCall: readCountCall,
    writeCall,
    writeConversation: writeMessagesConversation,
    readCount: body => readCount(parseUpstreamJson(body)),
    writeCounts: ([count = 0]) => writeCount(count),
  },
  'openai-responses': {
    protocol: responses,
    codec: responses.codec,
    readCall: responses.readCall,
    writeCall: responses.writeCall,
    writeConversation: (conversation, target) =>
      writeResponsesConversation(conversation, { flavour: openaiFlavour, target }),
    readCount: body => readInputTokens(parseUpstreamJson(body)),
    writeCounts: ([count = 0]) => writeInputTokens(count),
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
      const answer = parseUpstreamJson(body)
      return isObject(answer) && Array.isArray(answer.data) ? answer.data.length : undefined
    },
    writeCounts: writeTokenization,
    readTexts,
  },
} as const satisfies Record<string, TokenCountDialect>

export const findTokenCountDialect = (name: string): TokenCountDialect | undefined =>
  Object.hasOwn(tokenCountDialects, name) ? tokenCountDialects[name as keyof typeof tokenCountDialects] : undefined
