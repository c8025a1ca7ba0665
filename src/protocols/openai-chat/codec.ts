// Builds the codec of chat for a flavour.

import type { Codec } from '../protocol.ts'
import type { ChatFlavour } from './flavour.ts'
import { ChatStreamFollower } from './follow-stream.ts'
import { readConversation } from './read-conversation.ts'
import { ChatEventReader, readWholeAnswer } from './read-events.ts'
import { writeWholeAnswer } from './write-answer.ts'
import { writeConversation } from './write-conversation.ts'
import { ChatEventWriter } from './write-events.ts'

export function buildCodec(flavour: ChatFlavour): Codec {
  return {
    readConversation: call => readConversation(call, flavour),
    writeConversation: (conversation, target) => writeConversation(conversation, target, flavour),
    readWholeAnswer,
    openEventReader: source => new ChatEventReader(source),
    writeWholeAnswer: (answer, target) => writeWholeAnswer(answer, target, flavour),
    openEventWriter: target => new ChatEventWriter(target, flavour),
    followStream: (target, keepsContent) => new ChatStreamFollower({ target, flavour, keepsContent }),
    missingSettings: ['topK'],
    outputTokensMin: 1,
    mustInline: (_source, kind) => !flavour.fetchesFiles && (kind === 'audio' || kind === 'file'),
  }
}
