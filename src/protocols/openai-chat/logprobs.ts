// Reads and writes the log probabilities of tokens.

import type { TokenProb } from '../neutral/answer.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Reads the log probabilities of the text. Undefined if there are none. Invalid entries are left out. */
export function readLogprobs(logprobs: unknown): TokenProb[] | undefined {
  const content = isObject(logprobs) ? logprobs.content : undefined
  if (!Array.isArray(content) || content.length === 0) return undefined
  const read: TokenProb[] = []
  for (const entry of content as readonly unknown[]) {
    const token = readToken(entry)
    if (token === undefined) continue
    const { top_logprobs: others } = entry as Json
    const top = Array.isArray(others) ? others.flatMap((other: unknown) => readToken(other) ?? []) : []
    read.push(top.length === 0 ? token : { ...token, top })
  }
  return read.length === 0 ? undefined : read
}

function readToken(entry: unknown): Omit<TokenProb, 'top'> | undefined {
  if (!isObject(entry)) return undefined
  const { token, logprob, bytes } = entry
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined
  const isBytes = Array.isArray(bytes) && bytes.every(byte => Number.isInteger(byte) && byte >= 0 && byte <= 255)
  return { token, logprob, ...(isBytes && { bytes: bytes as number[] }) }
}

export function writeLogprobs(logprobs: readonly TokenProb[]): object {
  const content = logprobs.map(({ top = [], ...rest }) => ({ ...writeToken(rest), top_logprobs: top.map(writeToken) }))
  return { content, refusal: null }
}

const writeToken = ({ token, logprob, bytes }: Omit<TokenProb, 'top'>): object => ({
  token,
  logprob,
  bytes: bytes ?? [...Buffer.from(token)],
})
