// Runs audits in a thread, which is started by the first pass.

import { Thread } from '../../base/threads/thread.ts'
import type { AuditOptions } from './audit.ts'
import type { AuditThreadMethods } from './audit-thread.ts'
import type { AuditReport } from './findings.ts'

export class AuditWorker {
  readonly #thread: Thread<AuditThreadMethods, AuditOptions>
  #running: Promise<AuditReport> | undefined

  constructor(options: AuditOptions) {
    this.#thread = new Thread({ url: new URL('./audit-thread.ts', import.meta.url), setup: () => options })
  }

  /** Runs a pass and returns its report. A call during a pass gets the report of the running pass. */
  pass(): Promise<AuditReport> {
    this.#running ??= this.#thread.run('pass', undefined).finally(() => (this.#running = undefined))
    return this.#running
  }

  /** Closes the database. A running pass is aborted. */
  async close(): Promise<void> {
    if (!this.#thread.isRunning) return
    const aborted = new Error('the audit was aborted')
    this.#thread.rejectWaiting(aborted)
    await this.#thread.run('close', undefined).catch(() => {})
    this.#thread.stop(aborted)
  }
}

/** Audits the whole database once, at full speed. */
export async function auditDatabase(path: string, { deep = false } = {}): Promise<AuditReport> {
  const auditor = new AuditWorker({ path, lagMs: 0, rests: false, deep })
  try {
    return await auditor.pass()
  } finally {
    await auditor.close()
  }
}
