// Translates this dialect to and from the neutral conversation and answer, for calls between two dialects.

import type { Codec } from '../protocol.ts'
import { readWhole } from './answer-reader.ts'
import { writeWhole } from './answer-writer.ts'
import { readConversation } from './conversation-reader.ts'
import { writeConversation } from './conversation-writer.ts'
import { MessageEventReader } from './event-reader.ts'
import { MessageEventWriter } from './event-writer.ts'

export const codec: Codec = {
  readConversation,
  writeConversation,
  readWhole,
  openReader: source => new MessageEventReader(source),
  writeWhole,
  openWriter: request => new MessageEventWriter(request),
  // The provider fetches https URLs only.
  mustHold: source => source.at === 'url' && !/^https:/i.test(source.url),
}
