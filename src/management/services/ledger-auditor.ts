// Runs the audits of the ledger and acts on their findings.

import type { Log } from '../../base/log.ts'
import type { Auditor } from '../../billing/auditor.ts'
import { buildAuditor } from '../../billing/auditor.ts'
import type { Jobs, LedgerAuditSource, StoreWriter } from '../../store/engine/store-engine.ts'
import type { AuditReport } from '../../store/ledger-audit/findings.ts'

export interface LedgerAuditorParts {
  readonly source: LedgerAuditSource
  readonly writer: Pick<StoreWriter, 'run'>
  readonly jobs: Pick<Jobs, 'isOurs'>
  readonly everyMs: number
  readonly log: Log
}

export interface LedgerAuditor {
  readonly auditor: Auditor
  /** Audits the whole ledger and acts on the findings. */
  audit(): Promise<AuditReport>
  close(): Promise<void>
}

export function buildLedgerAuditor({ source, writer, jobs, everyMs, log }: LedgerAuditorParts): LedgerAuditor {
  const auditor = buildAuditor({
    auditNew: () => source.pass(),
    isOurs: () => jobs.isOurs('audit'),
    freeze: async id => void (await writer.run('setAccount', { id, frozen: true }, { actor: 'auditor' })),
    async onFinding({ check, accountId: account, text: finding }) {
      const data = JSON.stringify({ check, finding, ...(account !== null && { account }) })
      await writer.run('raiseEvent', { event: 'ledger.drift', accountId: null, data })
    },
    everyMs,
    log,
  })
  return {
    auditor,
    async audit() {
      const report = await source.auditAll()
      await auditor.handleReport(report)
      return report
    },
    async close() {
      auditor.close()
      await source.close()
    },
  }
}
