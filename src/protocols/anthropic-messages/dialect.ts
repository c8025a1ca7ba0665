// The Anthropic Messages dialect: what the pipeline needs to serve calls in it and to send calls to upstreams that speak
// it.

import type { Protocol } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import { begins, cacheMs } from './begins.ts'
import { codec } from './codec.ts'
import { quotaHeaders, writeError } from './errors.ts'
import { passes, readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { defaultVersion } from './versions.ts'

export const anthropicMessages = {
  name: 'anthropic-messages',
  lastEvent: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
  tellsSearches: true,
  sumsUpThoughts: true,
  thinksOnlyIfAsked: true,
  thinks: ({ thinking }) => isObject(thinking) && thinking.type !== 'disabled',
  passes,
  headers: { 'anthropic-version': defaultVersion },
  readCall,
  writeCall,
  begins,
  cacheMs,
  readAnswer,
  readFrame,
  writeError,
  quotaHeaders,
  codec,
} as const satisfies Protocol
