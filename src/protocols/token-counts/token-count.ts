// How a dialect asks how long a request is. It is the same request, without what only an answer needs; nothing is
// generated for it, and nobody pays.

import type { Call, CallTarget } from '../neutral/call.ts'
import type { Conversation } from '../neutral/conversation.ts'
import type { Asked, Codec, ConversationTarget, Protocol } from '../protocol.ts'
import { parseAnswer } from '../request/json-object.ts'

export interface CountDialect {
  /** The dialect of the requests that it counts; an upstream of it is signed and refuses as for any other call. */
  readonly protocol: Protocol
  /** Throws a Refusal. */
  readCall(body: Buffer, asked: Asked): Call
  /** The request for an upstream of this same dialect. */
  writeCall(call: Call, target: CallTarget): Uint8Array
  /** The same, of what a caller of another dialect means; absent where there is no place for all of that. */
  writeConversation?(conversation: Conversation, target: ConversationTarget): string
  /** What an upstream answered. Undefined for what is no count. */
  readCount(body: Buffer): number | undefined
  writeCounts(counts: readonly number[], call: Call): string
  /** Each is counted for itself, where a request is texts and no talk. */
  texts?(call: Call): readonly string[]
  readonly codec?: Codec
}

/** JSON, or undefined for what is none. */
export function parsed(body: Buffer): unknown {
  try {
    return parseAnswer(body.toString('utf8'))
  } catch {
    return undefined
  }
}
