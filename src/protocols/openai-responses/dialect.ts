// Builds the Responses dialect for a flavour: OpenAI's or Ark's.

import type { ErrorReply } from '../../base/errors.ts'
import type { Codec, Protocol, WrittenError } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import { hasNoOtherThinkingField } from '../request/thinking-fields.ts'
import { readCacheMs, readConversationStart } from './conversation-start.ts'
import type { ResponsesFlavour } from './flavour.ts'
import { ResponsesStreamFollower } from './follow-stream.ts'
import { readWholeAnswer } from './read-answer.ts'
import { readConversation } from './read-conversation.ts'
import { openEventReader } from './read-events.ts'
import { readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { writeWholeAnswer } from './write-answer.ts'
import { missingSettings, writeConversation } from './write-conversation.ts'
import { openEventWriter } from './write-events.ts'

interface ResponsesOptions {
  /** Request headers that are forwarded. */
  readonly passedHeaders: readonly string[]
  writeError(error: ErrorReply): WrittenError
}

export function buildResponsesProtocol(
  flavour: ResponsesFlavour,
  { passedHeaders, writeError }: ResponsesOptions,
): Protocol & { codec: Codec } {
  return {
    name: flavour.name,
    // No event comes after the last response event.
    lastEvent: '',
    tellsSearches: true,
    showsThoughtSummaries: true,
    asksForThinking(json) {
      const isOff = isObject(json.reasoning) && json.reasoning.effort === 'none'
      return isOff && hasNoOtherThinkingField(json, 'reasoning') ? false : undefined
    },
    capFieldName: 'max_output_tokens',
    messagesFieldName: 'input',
    passedHeaders,
    readCall: body => readCall(body, flavour),
    writeCall,
    begins: readConversationStart,
    cacheMs: readCacheMs,
    readAnswer,
    readFrame,
    writeError,
    codec: {
      readConversation: call => readConversation(call, flavour),
      writeConversation: (conversation, target) => writeConversation(conversation, { flavour, target }),
      readWholeAnswer: (json, source) => readWholeAnswer(json, { flavour, source }),
      openEventReader: source => openEventReader({ flavour, source }),
      writeWholeAnswer: (answer, target) => writeWholeAnswer(answer, target, flavour),
      openEventWriter: target => openEventWriter(target, flavour),
      followStream: (target, keepsContent) => new ResponsesStreamFollower(target, keepsContent),
      missingSettings,
      outputTokensMin: flavour.outputTokensMin,
    },
  }
}

/** Headers that switch on Ark's beta tools. */
export const arkHeaders: readonly string[] = [
  'ark-beta-web-search',
  'ark-beta-mcp',
  'ark-beta-knowledge-search',
  'ark-beta-doubao-app',
  'ark-beta-image-process',
]
