// The Gemini dialect: what the pipeline needs to serve calls in it and to send calls to upstreams that speak it.

import type { Protocol } from '../protocol.ts'
import { readCacheMs, readConversationStart } from './conversation-start.ts'
import { writeError } from './errors.ts'
import { GeminiStreamFollower } from './follow-stream.ts'
import { emptyChunk, openFraming } from './framing.ts'
import { needsInline } from './media.ts'
import { openEventReader, readWholeAnswer } from './read-answer.ts'
import { readConversation } from './read-conversation.ts'
import { readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { asksForThinking } from './thinking.ts'
import { openEventWriter, writeWholeAnswer } from './write-answer.ts'
import { writeConversation } from './write-conversation.ts'

export const gemini = {
  name: 'gemini',
  lastEvent: '',
  // Many clients that parse this dialect's events themselves do not accept comments, so a ping is an event.
  ping: `data: ${JSON.stringify(emptyChunk)}\n\n`,
  emptyIsComplete: true,
  tellsSearches: true,
  showsThoughtSummaries: true,
  asksForThinking,
  capFieldName: 'maxOutputTokens',
  messagesFieldName: 'contents',
  readCall,
  writeCall,
  begins: readConversationStart,
  cacheMs: readCacheMs,
  readAnswer,
  openFraming,
  readFrame,
  writeError,
  codec: {
    readConversation,
    writeConversation,
    readWholeAnswer,
    openEventReader,
    writeWholeAnswer,
    openEventWriter,
    followStream: (target, keepsContent) => new GeminiStreamFollower(target, keepsContent),
    outputTokensMin: 1,
    mustInline: needsInline,
  },
} as const satisfies Protocol
