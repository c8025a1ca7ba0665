// How likely each token was, as chat tells it.

import type { TokenProb } from '../neutral/answer.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** Of the text; undefined where none are told. What is no token is left out. */
export function readLogprobs(logprobs: unknown): TokenProb[] | undefined {
  const content = isObject(logprobs) ? logprobs.content : undefined
  if (!Array.isArray(content) || content.length === 0) return undefined
  const read: TokenProb[] = []
  for (const given of content as readonly unknown[]) {
    const token = readToken(given)
    if (token === undefined) continue
    const { top_logprobs: others } = given as Json
    const top = Array.isArray(others) ? others.flatMap((other: unknown) => readToken(other) ?? []) : []
    read.push(top.length === 0 ? token : { ...token, top })
  }
  return read.length === 0 ? undefined : read
}

function readToken(given: unknown): Omit<TokenProb, 'top'> | undefined {
  if (!isObject(given)) return undefined
  const { token, logprob, bytes } = given
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
