// Builds the codec of chat for a flavour.

import type { Codec } from '../protocol.ts'
import type { Flavour } from './flavour.ts'
import { readConversation } from './read-conversation.ts'
import { ChatEventReader, readWhole } from './read-events.ts'
import { writeConversation } from './write-conversation.ts'
import { ChatEventWriter } from './write-events.ts'
import { writeWhole } from './write-whole.ts'

export function buildCodec(flavour: Flavour): Codec {
  return {
    readConversation: call => readConversation(call, flavour),
    writeConversation: (conversation, target) => writeConversation(conversation, target, flavour),
    readWhole,
    openReader: source => new ChatEventReader(source),
    writeWhole: (answer, target) => writeWhole(answer, target, flavour),
    openWriter: target => new ChatEventWriter(target, flavour),
    mustHold: (_source, kind) => !flavour.fetchesFiles && (kind === 'audio' || kind === 'file'),
  }
}
