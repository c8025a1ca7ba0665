// Runs the audits of the ledger and acts on their findings.

import type { Log } from '../../base/log.ts'
import type { Auditor, PassResult, SharedPass } from '../../billing/auditor.ts'
import { buildAuditor } from '../../billing/auditor.ts'
import type { Reader } from '../../store/engine/reader.ts'
import type { Jobs, LedgerAuditSource, StoreWriter } from '../../store/engine/store-engine.ts'
import type { AuditReport } from '../../store/ledger-audit/findings.ts'

export interface LedgerAuditorParts {
  readonly source: LedgerAuditSource
  readonly writer: Pick<StoreWriter, 'run'>
  readonly reader: Pick<Reader, 'setting'>
  readonly jobs: Pick<Jobs, 'isOurs'>
  /** Whether other processes use the database. */
  readonly isShared: boolean
  readonly everyMs: number
  readonly log: Log
}

export interface LedgerAuditor {
  readonly auditor: Auditor
  /** Audits the whole ledger and acts on the findings. */
  audit(): Promise<AuditReport>
  close(): Promise<void>
}

const PASS_SETTING = 'ledger_audit'
/** More of them say no more, and each pass writes all. */
const SHARED_FINDINGS_MAX = 200

export function buildLedgerAuditor(parts: LedgerAuditorParts): LedgerAuditor {
  const { source, writer, jobs, isShared, everyMs, log } = parts
  const auditor = buildAuditor({
    auditNew: () => source.pass(),
    isOurs: () => jobs.isOurs('audit'),
    shared: isShared ? buildSharedPass(parts) : undefined,
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

function buildSharedPass({ writer, reader }: Pick<LedgerAuditorParts, 'writer' | 'reader'>): SharedPass {
  return {
    async save({ findings, atMs }) {
      const value = JSON.stringify({ findings: findings.slice(0, SHARED_FINDINGS_MAX), atMs } satisfies PassResult)
      await writer.run('setSetting', { name: PASS_SETTING, value })
    },
    async load() {
      const text = await reader.setting(PASS_SETTING)
      return text === undefined ? undefined : (JSON.parse(text) as PassResult)
    },
  }
}
