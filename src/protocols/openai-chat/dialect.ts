// The dialect of OpenAI's Chat Completions.

import type { Protocol } from '../protocol.ts'
import { nothingElseThinks } from '../request/thinking-off.ts'
import { begins, cacheMs } from './begins.ts'
import { buildCodec } from './codec.ts'
import { writeError } from './errors.ts'
import { openaiChat as flavour } from './flavour.ts'
import { readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'

export const openaiChat = {
  name: 'openai-chat',
  lastEvent: 'data: [DONE]\n\n',
  readCall,
  writeCall,
  begins,
  cacheMs,
  thinks: json => (json.reasoning_effort === 'none' && nothingElseThinks(json, 'reasoning_effort') ? false : undefined),
  readAnswer,
  readFrame,
  writeError,
  codec: buildCodec(flavour),
} as const satisfies Protocol
