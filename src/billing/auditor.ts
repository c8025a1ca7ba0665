// What follows from an audit: an account whose books do not agree is frozen, once, and it is said in the log, in the
// readiness answer and in the metrics. Nothing is ever repaired: that is for a person who has understood it.

import { textId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import { OPERATOR_ID_MAX } from '../store/ledger/operator-accounts.ts'
import type { AuditReport, Finding } from '../store/ledger-audit/findings.ts'

export interface AuditorParts {
  /** One look at what is new. */
  pass(): Promise<AuditReport>
  freeze(accountId: number): Promise<void>
  /** Told once of each thing that does not agree. */
  tell?(finding: Finding): Promise<void>
  /** Zero: only when asked. */
  readonly everyMs: number
  readonly log: Log
}

export interface LedgerState {
  /** How many things do not agree. */
  readonly drift: number
  /** When the last look was; null before the first. */
  readonly auditedMs: number | null
}

export interface Auditor {
  readonly state: LedgerState
  /** What does not agree, as far as it was looked for. */
  readonly findings: readonly Finding[]
  /** Looks again and again from now on. */
  start(): void
  /** Takes the report of an audit of everything, which somebody asked for. */
  judge(report: AuditReport): Promise<void>
  close(): void
}

export function buildAuditor({ pass, freeze, tell, everyMs, log }: AuditorParts): Auditor {
  /** What was acted upon. An account that is unfrozen by hand stays so until something else is found. */
  const known = new Set<string>()
  /** What the last look found, and what the last audit of everything found: each knows what the other may not. */
  const current = { look: [] as readonly Finding[], whole: [] as readonly Finding[] }
  const found = (): readonly Finding[] => [
    ...new Map([...current.look, ...current.whole].map(finding => [finding.key, finding])).values(),
  ]
  let auditedMs: number | null = null

  async function act(finding: Finding): Promise<void> {
    const { accountId, key, check, text } = finding
    if (known.has(key)) return
    const account = accountId === null ? null : textId('acc', accountId)
    log.error('the books do not agree', { check, account, finding: text })
    // The operator's own accounts serve no calls, so there is nothing to freeze.
    if (accountId !== null && accountId > OPERATOR_ID_MAX) await freeze(accountId)
    await tell?.(finding)
    known.add(key)
  }

  async function judge(kind: keyof typeof current, { findings, atMs }: AuditReport): Promise<void> {
    current[kind] = findings
    auditedMs = atMs
    for (const finding of findings) {
      await act(finding).catch(fault => log.error('cannot freeze', { fault: describeFault(fault) }))
    }
  }

  async function look(): Promise<void> {
    try {
      await judge('look', await pass())
    } catch (fault) {
      if (!closed) log.error('audit failed', { fault: describeFault(fault) })
    }
    if (!closed) timer = setTimeout(look, everyMs)
  }

  let closed = false
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    get state() {
      return { drift: found().length, auditedMs }
    },
    get findings() {
      return found()
    },
    start() {
      if (everyMs > 0) timer = setTimeout(look, everyMs)
    },
    judge: report => judge('whole', report),
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
