// Calls with an idempotency key, and their effects: upstream requests, charges and records.

import { expect } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { Caller } from './caller.ts'
import { model, openRaw } from './caller.ts'

export const bodyOf = (more: object = {}): string => JSON.stringify({ model, messages: hello, ...more })
export const idOf = (response: Response): string => response.headers.get('x-request-id')!

let names = 0
/** An idempotency key that no other call has. */
export const freshName = (): string => `key-${++names}`

export interface IdempotentCall {
  readonly harness: Harness
  readonly key: string
  readonly name: string
}

export const send = ({ harness, key, name }: IdempotentCall, more: object = {}): Promise<Response> =>
  chat(harness, key, bodyOf(more), { 'idempotency-key': name })

/** Sends the same call on a socket that the test can close. */
export function open({ harness, key, name }: IdempotentCall, more: object = {}): Caller {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': name }
  return openRaw(harness.url, post('/v1/chat/completions', headers, bodyOf(more)))
}

export interface Effects {
  readonly upstream: number
  readonly charges: number
  readonly records: number
}

/** The effects of a call that is only recorded. */
export const recordOnly: Effects = { upstream: 0, charges: 0, records: 1 }

/** Runs the function and checks how many upstream requests, charges and records it made. */
export async function expectEffects(harness: Harness, spent: Effects, run: () => Promise<unknown>): Promise<void> {
  const charges = (): number => harness.records().filter(({ cost }) => Number(cost) > 0).length
  const [upstream, charged, records] = [harness.upstream.requests.length, charges(), harness.recordCount()]
  await run()
  await harness.idle()
  // The record of a refusal is written later.
  await until(() => harness.recordCount() - records >= spent.records, 'all calls are recorded')
  expect({
    upstream: harness.upstream.requests.length - upstream,
    charges: charges() - charged,
    records: harness.recordCount() - records,
  }).toEqual(spent)
}
