// Runs ledger audits and acts on their findings: freezes an account whose figures are inconsistent, and reports it in the
// log, in the readiness answer and in the metrics. It never repairs anything; that needs a person who understands the cause.

import { textId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import { OPERATOR_ID_MAX } from '../store/ledger/operator-accounts.ts'
import type { AuditFinding, AuditReport } from '../store/ledger-audit/findings.ts'

export interface AuditorParts {
  /** Audits what is new since the last pass. */
  auditNew(): Promise<AuditReport>
  /** Whether this process is the one that makes the regular passes. */
  isOurs(): Promise<boolean>
  freeze(accountId: number): Promise<void>
  /** What the process that makes the passes has found last, for the others. Undefined for the only process. */
  readonly shared?: SharedPass | undefined
  /** Called once for each finding. */
  onFinding?(finding: AuditFinding): Promise<void>
  /** The time between passes. Zero: audits run only on request. */
  readonly everyMs: number
  readonly log: Log
}

export type PassResult = Pick<AuditReport, 'findings' | 'atMs'>

export interface SharedPass {
  save(result: PassResult): Promise<void>
  /** Undefined before the first pass of any process. */
  load(): Promise<PassResult | undefined>
}

export interface LedgerState {
  /** The number of findings. */
  readonly drift: number
  /** When the last audit ended; null before the first. */
  readonly auditedMs: number | null
}

export interface Auditor {
  readonly state: LedgerState
  /** What the last pass and the last full audit have found. */
  readonly findings: readonly AuditFinding[]
  /** Starts the regular passes. */
  start(): void
  /** Acts on the report of a full audit, which runs on request. */
  handleReport(report: AuditReport): Promise<void>
  close(): void
}

export function buildAuditor({ auditNew, isOurs, freeze, shared, onFinding, everyMs, log }: AuditorParts): Auditor {
  /** Findings that were acted on. An account that is unfrozen by hand stays unfrozen until a new finding. */
  const handled = new Set<string>()
  /** Findings of the last pass and of the last full audit. Each may contain findings that the other does not see. */
  const current = { pass: [] as readonly AuditFinding[], full: [] as readonly AuditFinding[] }
  const allFindings = (): readonly AuditFinding[] => [
    ...new Map([...current.pass, ...current.full].map(finding => [finding.key, finding])).values(),
  ]
  let auditedMs: number | null = null

  async function act(finding: AuditFinding): Promise<void> {
    const { accountId, key, check, text } = finding
    if (handled.has(key)) return
    const account = accountId === null ? null : textId('acc', accountId)
    log.error('the ledger is inconsistent', { check, account, finding: text })
    // The operator's own accounts make no calls, so there is nothing to freeze.
    if (accountId !== null && accountId > OPERATOR_ID_MAX) await freeze(accountId)
    await onFinding?.(finding)
    handled.add(key)
  }

  async function handleReport(kind: keyof typeof current, { findings, atMs }: AuditReport): Promise<void> {
    current[kind] = findings
    auditedMs = atMs
    for (const finding of findings) {
      await act(finding).catch(fault => log.error('cannot freeze the account', { fault: describeFault(fault) }))
    }
  }

  /** Every process answers for all: with what the one has found that makes the passes. */
  async function followPasses(): Promise<void> {
    const result = await shared?.load()
    if (result === undefined) return
    current.pass = result.findings
    auditedMs = Math.max(auditedMs ?? 0, result.atMs)
  }

  async function makePass(): Promise<void> {
    const report = await auditNew()
    await handleReport('pass', report)
    await shared?.save(report)
  }

  async function runPass(): Promise<void> {
    try {
      if (!(await isOurs())) await followPasses()
      else if (!isClosed) await makePass()
    } catch (fault) {
      if (!isClosed) log.error('audit failed', { fault: describeFault(fault) })
    }
    if (!isClosed) timer = setTimeout(runPass, everyMs)
  }

  let isClosed = false
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    get state() {
      return { drift: allFindings().length, auditedMs }
    },
    get findings() {
      return allFindings()
    },
    start() {
      if (everyMs > 0) timer = setTimeout(runPass, everyMs)
    },
    handleReport: report => handleReport('full', report),
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
