// The columns of call records and of transfers. The insertion of a record is written by hand in ledger-operations.ts,
// because every call pays for it; a test compares it with this description.

import { flag, json, money, nullable, number, text } from './columns.ts'

/** What a list of records shows. */
export const recordColumns = {
  callId: ['call_id', number],
  keyId: ['key_id', number],
  accountId: ['account_id', number],
  dialect: ['dialect', text],
  provider: ['provider', nullable(text)],
  model: ['model', nullable(text)],
  channel: ['channel', nullable(text)],
  status: ['status', number],
  error: ['error', nullable(text)],
  outcome: ['outcome', text],
  streamed: ['streamed', flag],
  inputTokens: ['input_tokens', number],
  cacheReadTokens: ['cache_read_tokens', number],
  cacheWriteTokens: ['cache_write_tokens', number],
  outputTokens: ['output_tokens', number],
  reasoningTokens: ['reasoning_tokens', number],
  cost: ['cost', money],
  shortfall: ['shortfall', money],
  firstContentMs: ['first_ms', nullable(number)],
  durationMs: ['duration_ms', number],
  endUser: ['end_user', nullable(text)],
  loss: ['loss', nullable(text)],
  conversation: ['conversation', nullable(text)],
} as const

export const fullRecordColumns = {
  ...recordColumns,
  requestedModel: ['asked', nullable(text)],
  rule: ['rule', text],
  usageSource: ['usage_source', text],
  held: ['held', money],
  priceVersion: ['price_version', nullable(number)],
  lines: ['lines', json],
  attempts: ['attempts', json],
  timings: ['timings', json],
  tags: ['tags', json],
  requestHash: ['came_hash', nullable(text)],
  upstreamHash: ['went_hash', nullable(text)],
  routing: ['why', json],
} as const

/** The names of the account and the key of a record `r`. Null where the key no longer exists. */
export const recordNameColumns = {
  accountName: ['(SELECT a.name FROM account a WHERE a.id = r.account_id)', nullable(text)],
  keyName: ['(SELECT k.name FROM api_key k WHERE k.id = r.key_id)', nullable(text)],
  keySuffix: ['(SELECT k.suffix FROM api_key k WHERE k.id = r.key_id)', nullable(text)],
} as const

export const transferColumns = {
  kind: ['kind', text],
  ref: ['ref', number],
  debit: ['debit', number],
  credit: ['credit', number],
  amount: ['amount', money],
  madeMs: ['made_ms', number],
  reference: ['reference', nullable(text)],
  author: ['author', nullable(text)],
} as const
