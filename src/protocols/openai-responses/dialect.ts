// Builds the Responses dialect for a flavour: OpenAI's or Ark's.

import type { SpokenError } from '../../base/errors.ts'
import type { Codec, Protocol, WrittenError } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import { nothingElseThinks } from '../request/thinking-off.ts'
import { begins, cacheMs } from './begins.ts'
import { openReader } from './event-reader.ts'
import { openWriter } from './event-writer.ts'
import type { Flavour } from './flavour.ts'
import { readConversation } from './read-conversation.ts'
import { readWhole } from './read-whole.ts'
import { readCall, writeCall } from './request.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { writeConversation } from './write-conversation.ts'
import { writeWhole } from './write-whole.ts'

interface ResponsesOptions {
  /** Request headers that are forwarded. */
  readonly passes: readonly string[]
  writeError(error: SpokenError): WrittenError
}

export function responsesProtocol(
  flavour: Flavour,
  { passes, writeError }: ResponsesOptions,
): Protocol & { codec: Codec } {
  return {
    name: flavour.name,
    // No event comes after the last response event.
    lastEvent: '',
    tellsSearches: true,
    sumsUpThoughts: true,
    thinks(json) {
      const isOff = isObject(json.reasoning) && json.reasoning.effort === 'none'
      return isOff && nothingElseThinks(json, 'reasoning') ? false : undefined
    },
    capName: 'max_output_tokens',
    turnsName: 'input',
    passes,
    readCall: body => readCall(body, flavour),
    writeCall,
    begins,
    cacheMs,
    readAnswer,
    readFrame,
    writeError,
    codec: {
      readConversation: call => readConversation(call, flavour),
      writeConversation: (conversation, target) => writeConversation(conversation, { flavour, target }),
      readWhole: (json, source) => readWhole(json, { flavour, source }),
      openReader: source => openReader({ flavour, source }),
      writeWhole: (answer, target) => writeWhole(answer, target, flavour),
      openWriter: target => openWriter(target, flavour),
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
