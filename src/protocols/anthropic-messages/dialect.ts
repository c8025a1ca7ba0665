// The Anthropic Messages dialect: what the pipeline needs to serve calls in it and to send calls to upstreams that speak
// it.

import type { Protocol } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import { codec } from './codec.ts'
import { readCacheMs, readConversationStart } from './conversation-start.ts'
import { writeError, writeQuotaHeaders } from './errors.ts'
import { passedHeaders, readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { defaultVersion } from './versions.ts'

export const anthropicMessages = {
  name: 'anthropic-messages',
  lastEvent: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
  tellsSearches: true,
  showsThoughtSummaries: true,
  showsReadingAgain: true,
  thinksOnlyIfRequested: true,
  asksForThinking: ({ thinking }) => isObject(thinking) && thinking.type !== 'disabled',
  passedHeaders,
  headers: { 'anthropic-version': defaultVersion },
  readCall,
  writeCall,
  begins: readConversationStart,
  cacheMs: readCacheMs,
  readAnswer,
  readFrame,
  writeError,
  quotaHeaders: writeQuotaHeaders,
  codec,
} as const satisfies Protocol
