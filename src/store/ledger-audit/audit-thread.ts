// The thread that runs audits. It reads on its own connection, and keeps its sums in memory between passes.

import { serveThread } from '../../base/threads/serve-thread.ts'
import type { AuditOptions } from './audit.ts'
import { LedgerAudit } from './audit.ts'
import type { AuditReport } from './findings.ts'

export interface AuditThreadMethods {
  pass(): AuditReport
  /** Closes the database, also during a pass. */
  close(): void
}

serveThread<AuditThreadMethods, AuditOptions>(options => {
  let audit: LedgerAudit | undefined
  const close = (): void => {
    audit?.close()
    audit = undefined
  }
  return {
    async pass() {
      try {
        audit ??= new LedgerAudit(options)
        return await audit.pass()
      } catch (fault) {
        close() // the sums in memory may be incomplete
        throw fault
      }
    },
    close,
  }
})
