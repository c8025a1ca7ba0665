// Every dialect, one line each.

import { anthropicMessages } from './anthropic-messages/dialect.ts'
import { writeError as writeArkError } from './ark/errors.ts'
import { gemini } from './gemini/dialect.ts'
import { writeError as writeChatError } from './openai-chat/errors.ts'
import { readCall, writeCall } from './openai-chat/request.ts'
import { readAnswer } from './openai-chat/response.ts'
import { readFrame } from './openai-chat/stream.ts'
import { arkHeaders, responsesProtocol } from './openai-responses/dialect.ts'
import { writeArkError as writeArkResponsesError } from './openai-responses/errors.ts'
import { writeError as writeResponsesError } from './openai-responses/errors.ts'
import { arkFlavour, openaiFlavour } from './openai-responses/flavour.ts'
import type { ErrorDialect, Protocol } from './protocol.ts'

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
  'openai-responses': responsesProtocol(openaiFlavour, { passes: ['openai-beta'], writeError: writeResponsesError }),
  'ark-responses': responsesProtocol(arkFlavour, { passes: arkHeaders, writeError: writeArkResponsesError }),
  'anthropic-messages': anthropicMessages,
  'gemini': gemini,
} as const satisfies Record<string, Protocol>

export const protocolNamed = (name: string): Protocol | undefined =>
  Object.hasOwn(protocols, name) ? protocols[name as keyof typeof protocols] : undefined

/** Dialects in which errors are spoken. */
export const errorDialects = {
  'openai-chat': protocols['openai-chat'],
  'openai-responses': protocols['openai-responses'],
  'anthropic-messages': protocols['anthropic-messages'],
  'gemini': protocols.gemini,
  'ark': { name: 'ark', writeError: writeArkError },
} as const satisfies Record<string, ErrorDialect>

export type ErrorDialectName = keyof typeof errorDialects
