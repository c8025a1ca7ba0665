// Every way to ask for a count, one row each.

import { readCount, readCountCall, writeCall, writeCount } from './anthropic-messages/request.ts'
import { textsOf, tokenization, writeTokenization } from './ark-side/reading.ts'
import type { CountDialect } from './counting.ts'
import { onlyFields, parsed } from './counting.ts'
import {
  readCount as readGeminiCount,
  readCountCall as readGeminiCall,
  writeCount as writeGeminiCount,
  writeCountCall as writeGeminiCall,
  writeCountConversation as writeGeminiConversation,
} from './gemini/count-tokens.ts'
import { isObject } from './json-object.ts'
import { protocols } from './list.ts'
import { inputTokensBody, readInputTokens } from './openai-responses/state.ts'

const { 'anthropic-messages': anthropic, 'openai-responses': responses, gemini } = protocols

const MESSAGE_FIELDS = [
  ...['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'cache_control'],
]

const RESPONSE_FIELDS = [
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'reasoning', 'text'],
]

export const countDialects = {
  'anthropic-messages': {
    protocol: anthropic,
    codec: anthropic.codec,
    readCall: readCountCall,
    writeCall,
    writeConversation: (said, target) => onlyFields(anthropic.codec.writeConversation(said, target), MESSAGE_FIELDS),
    readCount: body => readCount(parsed(body)),
    writeCounts: ([count = 0]) => writeCount(count),
  },
  'openai-responses': {
    protocol: responses,
    codec: responses.codec,
    readCall: responses.readCall,
    writeCall: responses.writeCall,
    writeConversation: (said, target) => onlyFields(responses.codec.writeConversation(said, target), RESPONSE_FIELDS),
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
