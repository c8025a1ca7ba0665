// The key of a conversation for affinity: short, equal for all of its turns, and different for other accounts.

import { crc32 } from 'node:zlib'

/** `model` is the name that the caller sent; `begins` comes from `Protocol.begins`. */
export function conversationKey(accountId: number, model: string, begins: string): string {
  // Two conversations with the same key only share a preference, so a fast hash is enough.
  const text = `${model}\n${begins}`
  const half = text.length >>> 1
  return `${accountId}:${crc32(text)}:${crc32(text.slice(half), half)}`
}
