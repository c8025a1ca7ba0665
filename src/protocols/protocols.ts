// The table of all dialects.

import { anthropicMessages } from './anthropic-messages/dialect.ts'
import { ark } from './ark/dialect.ts'
import { gemini } from './gemini/dialect.ts'
import { openaiChat } from './openai-chat/dialect.ts'
import { arkHeaders, buildResponsesProtocol } from './openai-responses/dialect.ts'
import {
  writeArkError as writeArkResponsesError,
  writeError as writeResponsesError,
} from './openai-responses/errors.ts'
import { arkFlavour, openaiFlavour } from './openai-responses/flavour.ts'
import { passthroughProtocols } from './passthrough-protocols.ts'
import type { ErrorDialect, Protocol } from './protocol.ts'

/** Dialects that calls can be translated from and to. */
export const protocols = {
  'openai-chat': openaiChat,
  'openai-responses': buildResponsesProtocol(openaiFlavour, {
    passedHeaders: ['openai-beta'],
    writeError: writeResponsesError,
  }),
  'anthropic-messages': anthropicMessages,
  'gemini': gemini,
  'ark': ark,
  'ark-responses': buildResponsesProtocol(arkFlavour, {
    passedHeaders: arkHeaders,
    writeError: writeArkResponsesError,
  }),
} as const satisfies Record<string, Protocol>

const byName: Readonly<Record<string, Protocol>> = { ...protocols, ...passthroughProtocols }

export const findProtocol = (name: string): Protocol | undefined =>
  Object.hasOwn(byName, name) ? byName[name] : undefined

/** Dialects in which errors are written. */
export const errorDialects = {
  'openai-chat': protocols['openai-chat'],
  'openai-responses': protocols['openai-responses'],
  'anthropic-messages': protocols['anthropic-messages'],
  'gemini': protocols.gemini,
  'ark': protocols.ark,
} as const satisfies Record<string, ErrorDialect>

export type ErrorDialectName = keyof typeof errorDialects
