// Reads and writes the log probabilities of tokens.

import type { TokenProb } from '../neutral/answer.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

function readToken(value: unknown): Omit<TokenProb, 'top'> | undefined {
  if (!isObject(value) || typeof value.token !== 'string' || typeof value.logProbability !== 'number') return undefined
  return { token: value.token, logprob: value.logProbability }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : [])

/** Undefined for an answer without log probabilities. */
export function readLogprobs(result: unknown): readonly TokenProb[] | undefined {
  if (!isObject(result) || !Array.isArray(result.chosenCandidates)) return undefined
  const alternatives = listOf(result.topCandidates)
  return (result.chosenCandidates as readonly unknown[]).flatMap((chosen, index) => {
    const token = readToken(chosen)
    const others = alternatives[index]
    const top = listOf(isObject(others) ? others.candidates : undefined).flatMap(other => readToken(other) ?? [])
    return token === undefined ? [] : [top.length === 0 ? token : { ...token, top }]
  })
}

const writeToken = ({ token, logprob }: Omit<TokenProb, 'top'>): Json => ({ token, logProbability: logprob })

export function writeLogprobs(tokens: readonly TokenProb[]): Json {
  const hasTop = tokens.some(({ top }) => top !== undefined && top.length > 0)
  return {
    chosenCandidates: tokens.map(writeToken),
    ...(hasTop && { topCandidates: tokens.map(({ top = [] }) => ({ candidates: top.map(writeToken) })) }),
  }
}
