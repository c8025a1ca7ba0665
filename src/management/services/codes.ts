// Redemption codes: creates a batch of codes, and derives the state of a code. The codes are returned once, when they
// are created; only their digests are stored.

import type { Nanos } from '../../base/money/money.ts'
import type { CodeText } from '../../identity/code-format.ts'
import { digestCode, mintCode } from '../../identity/code-format.ts'
import type { AuditActor } from '../../store/audit-log/audited-operations.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { CodeView } from '../../store/queries/codes.ts'
import type { ManagementParts } from '../management-parts.ts'

/** Codes per transaction. Calls wait for the transaction, so it must stay short. */
const CODES_AT_ONCE = 500

export interface CodeBatch {
  readonly count: number
  readonly amount: Nanos
  readonly batch: string
  readonly expiresMs: number | null
}

type Parts = Pick<ManagementParts, 'writer' | 'pepper' | 'mintId'>

/** Undefined if there is already a batch of this name. */
export async function createCodeBatch(
  parts: Parts,
  wanted: CodeBatch,
  by: AuditActor,
): Promise<readonly CodeText[] | undefined> {
  const { count, amount, batch, expiresMs } = wanted
  const codes = Array.from({ length: count }, () => mintCode())
  for (let at = 0; at < count; at += CODES_AT_ONCE) {
    const slice = codes.slice(at, at + CODES_AT_ONCE)
    const { newest, newestFingerprint: pepper } = parts.pepper
    const rows = slice.map(code => ({ id: parts.mintId(), digest: digestCode(code, newest).toString('hex') }))
    const input = { codes: rows, pepper, batch, isNew: at === 0, amount: moneyText(amount), expiresMs }
    const { done } = await parts.writer.run('createCodes', { ...input, author: by.actor }, by)
    if (done === 'exists') return undefined
  }
  return codes
}

export const codeStates = ['open', 'redeemed', 'voided', 'expired'] as const
export type CodeState = (typeof codeStates)[number]

export function codeState({ expiresMs, redeemedMs, voidedMs }: CodeTimes, nowMs: number): CodeState {
  if (redeemedMs !== null) return 'redeemed'
  if (voidedMs !== null) return 'voided'
  return expiresMs !== null && expiresMs <= nowMs ? 'expired' : 'open'
}

type CodeTimes = Pick<CodeView, 'expiresMs' | 'redeemedMs' | 'voidedMs'>
