// The Gemini dialect: what the pipeline needs to serve calls in it and to send calls to upstreams that speak it.

import type { Protocol } from '../protocol.ts'
import { begins, cacheMs } from './begins.ts'
import { writeError } from './errors.ts'
import { nothing, openFraming } from './framing.ts'
import { needsInline } from './media.ts'
import { openReader, readWhole } from './read-answer.ts'
import { readConversation } from './read-request.ts'
import { readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { thinks } from './thinking.ts'
import { openWriter, writeWhole } from './write-answer.ts'
import { writeConversation } from './write-request.ts'

export const gemini = {
  name: 'gemini',
  lastEvent: '',
  // Many clients that parse this dialect's events themselves do not accept comments, so a ping is an event.
  ping: `data: ${JSON.stringify(nothing)}\n\n`,
  emptyIsWhole: true,
  tellsSearches: true,
  sumsUpThoughts: true,
  thinks,
  capName: 'maxOutputTokens',
  turnsName: 'contents',
  readCall,
  writeCall,
  begins,
  cacheMs,
  readAnswer,
  openFraming,
  readFrame,
  writeError,
  codec: {
    readConversation,
    writeConversation,
    readWhole,
    openReader,
    writeWhole,
    openWriter,
    mustHold: needsInline,
  },
} as const satisfies Protocol
