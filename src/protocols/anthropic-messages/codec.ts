// Translates this dialect to and from the neutral conversation and answer, for calls between two dialects.

import { isOtherThanPdf } from '../media/text-documents.ts'
import type { Codec } from '../protocol.ts'
import { MessageStreamFollower } from './follow-stream.ts'
import { readWholeAnswer } from './read-answer.ts'
import { readConversation } from './read-conversation.ts'
import { MessageEventReader } from './read-events.ts'
import { writeWholeAnswer } from './write-answer.ts'
import { writeConversation } from './write-conversation.ts'
import { MessageEventWriter } from './write-events.ts'

export const codec: Codec = {
  readConversation,
  writeConversation,
  readWholeAnswer,
  openEventReader: source => new MessageEventReader(source),
  writeWholeAnswer,
  openEventWriter: request => new MessageEventWriter(request),
  followStream: (target, keepsContent) => new MessageStreamFollower(target, keepsContent),
  missingSettings: ['seed', 'frequencyPenalty', 'presencePenalty', 'logprobs', 'logitBias', 'choices'],
  outputTokensMin: 0, // fills the cache and answers nothing
  // The provider fetches https URLs only, and of files only PDFs.
  mustInline: (source, kind) =>
    source.at === 'url' && (!/^https:/i.test(source.url) || (kind === 'file' && isOtherThanPdf(source))),
}
