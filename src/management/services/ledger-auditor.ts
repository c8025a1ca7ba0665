// Runs the ledger audit of one data folder: audits in a thread, acts on the findings, and audits backups.

import type { Log } from '../../base/log.ts'
import type { Auditor } from '../../billing/auditor.ts'
import { buildAuditor } from '../../billing/auditor.ts'
import type { BackupReport } from '../../store/engine/backup.ts'
import { backUp } from '../../store/engine/backup.ts'
import type { DataFolder } from '../../store/engine/folder.ts'
import type { Writer } from '../../store/engine/writer.ts'
import { AuditWorker, auditDatabase } from '../../store/ledger-audit/audit-worker.ts'
import type { AuditReport } from '../../store/ledger-audit/findings.ts'

export interface LedgerAuditorParts {
  readonly folder: Pick<DataFolder, 'path' | 'database'>
  readonly writer: Pick<Writer, 'run'>
  readonly everyMs: number
  /** The longest time between the id of a call and its hold. */
  readonly lagMs: number
  readonly version: string
  readonly log: Log
}

export interface LedgerAuditor {
  readonly auditor: Auditor
  /** Audits the whole ledger and acts on the findings. */
  audit(): Promise<AuditReport>
  backUp(to: string): Promise<BackupReport>
  close(): Promise<void>
}

export function buildLedgerAuditor({
  folder,
  writer,
  everyMs,
  lagMs,
  version,
  log,
}: LedgerAuditorParts): LedgerAuditor {
  const auditing = new AuditWorker({ path: folder.database, lagMs, rests: true, deep: false })
  const auditor = buildAuditor({
    auditNew: () => auditing.pass(),
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
      const report = await auditDatabase(folder.database)
      await auditor.handleReport(report)
      return report
    },
    backUp: to => backUp(folder.path, to, version),
    async close() {
      auditor.close()
      await auditing.close()
    },
  }
}
