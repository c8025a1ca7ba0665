// Runs audits in a thread, which is started by the first pass.

import type { AuditOptions } from './audit.ts'
import type { AuditMessage, AuditReply } from './audit-thread.ts'
import type { AuditReport } from './findings.ts'

export class AuditWorker {
  readonly #options: AuditOptions
  #thread: Worker | undefined
  #running: PromiseWithResolvers<AuditReport> | undefined

  constructor(options: AuditOptions) {
    this.#options = options
  }

  /** Runs a pass and returns its report. A call during a pass gets the report of the running pass. */
  pass(): Promise<AuditReport> {
    if (this.#running !== undefined) return this.#running.promise
    this.#running = Promise.withResolvers<AuditReport>()
    this.#thread ??= this.#start()
    this.#send({ pass: true })
    return this.#running.promise
  }

  /** Closes the database. A running pass is aborted. */
  async close(): Promise<void> {
    const thread = this.#thread
    this.#thread = undefined
    this.#finish(new Error('the audit was aborted'))
    if (thread === undefined) return
    await new Promise<void>(resolve => {
      thread.onmessage = (event: MessageEvent<AuditReply>) => 'closed' in event.data && resolve()
      thread.onerror = () => resolve()
      thread.postMessage({ close: true } satisfies AuditMessage)
    })
    thread.terminate()
  }

  #start(): Worker {
    const thread = new Worker(new URL('./audit-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<AuditReply>) => {
      if ('report' in event.data) this.#finish(event.data.report)
      else if ('failed' in event.data) this.#finish(new Error(event.data.failed))
    }
    thread.onerror = event => {
      this.#thread = undefined // the next pass starts another thread
      this.#finish(new Error(event.message))
    }
    thread.postMessage({ open: this.#options } satisfies AuditMessage)
    return thread
  }

  #send(message: AuditMessage): void {
    this.#thread?.postMessage(message)
  }

  #finish(outcome: AuditReport | Error): void {
    const running = this.#running
    this.#running = undefined
    if (outcome instanceof Error) running?.reject(outcome)
    else running?.resolve(outcome)
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
