// What a conversation is remembered by: short, the same for each of its turns, and never that of another account.

import { crc32 } from 'node:zlib'

/** `model` is as the caller named it, `begins` what `Protocol.begins` says. */
export function conversationName(accountId: number, model: string, begins: string): string {
  // Two that share a name only share a preference, so that speed counts for more than how rare that is.
  const text = `${model}\n${begins}`
  const half = text.length >>> 1
  return `${accountId}:${crc32(text)}:${crc32(text.slice(half), half)}`
}
