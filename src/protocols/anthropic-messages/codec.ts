// How the meaning of this dialect is read and written, for a call whose other side speaks another.

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
  openWriter: to => new MessageEventWriter(to),
  // The provider fetches by https and by nothing else.
  mustHold: source => source.at === 'url' && !/^https:/i.test(source.url),
}
