// Every dialect, one line each.

import { anthropicMessages } from './anthropic-messages/dialect.ts'
import { writeError as writeArkError } from './ark/errors.ts'
import { writeError as writeGeminiError } from './gemini/errors.ts'
import { writeError as writeChatError } from './openai-chat/errors.ts'
import { readCall, writeCall } from './openai-chat/request.ts'
import { readAnswer } from './openai-chat/response.ts'
import { readFrame } from './openai-chat/stream.ts'
import { writeError as writeResponsesError } from './openai-responses/errors.ts'
import type { ErrorDialect, Protocol } from './protocol.ts'
import { sideProtocols } from './side-list.ts'

/** Dialects in which calls are served. */
export const protocols = {
  'openai-chat': {
    name: 'openai-chat',
    lastEvent: 'data: [DONE]\n\n',
    readCall,
    writeCall,
    readAnswer,
    readFrame,
    writeError: writeChatError,
  },
  'anthropic-messages': anthropicMessages,
} as const satisfies Record<string, Protocol>

const all: Readonly<Record<string, Protocol>> = { ...protocols, ...sideProtocols }

export const protocolNamed = (name: string): Protocol | undefined => (Object.hasOwn(all, name) ? all[name] : undefined)

/** Dialects in which errors are spoken. */
export const errorDialects = {
  'openai-chat': protocols['openai-chat'],
  'openai-responses': { name: 'openai-responses', writeError: writeResponsesError },
  'anthropic-messages': protocols['anthropic-messages'],
  'gemini': { name: 'gemini', writeError: writeGeminiError },
  'ark': { name: 'ark', writeError: writeArkError },
} as const satisfies Record<string, ErrorDialect>

export type ErrorDialectName = keyof typeof errorDialects
