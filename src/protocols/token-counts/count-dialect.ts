// The interface of a dialect for token counts. The request is an ordinary request without the fields that only matter
// for an answer. Nothing is generated, and the count is free.

import type { Call, CallTarget } from '../neutral/call.ts'
import type { Conversation } from '../neutral/conversation.ts'
import type { Codec, ConversationTarget, Protocol, RequestHead } from '../protocol.ts'

export interface TokenCountDialect {
  /** The dialect of the requests that are counted. Signing and errors are the same as for its calls. */
  readonly protocol: Protocol
  /** Throws a Refusal. */
  readCall(body: Buffer, request: RequestHead): Call
  /** Writes the request for an upstream of the same dialect. */
  writeCall(call: Call, target: CallTarget): Uint8Array
  /** Writes the request of a caller of another dialect. Absent: the dialect cannot count conversations. */
  writeConversation?(conversation: Conversation, target: ConversationTarget): string
  /** Reads the answer of an upstream. Undefined if it has no count. */
  readCount(body: Buffer): number | undefined
  writeCounts(counts: readonly number[], call: Call): string
  /** The texts that are counted one by one, if the request is a list of texts and no conversation. */
  readTexts?(call: Call): readonly string[]
  readonly codec?: Codec
}
