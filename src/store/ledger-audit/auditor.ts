// The near side of the auditor's thread, which is started when it is first needed.

import type { AuditOptions } from './audit.ts'
import type { FromAudit, ToAudit } from './audit-thread.ts'
import type { AuditReport } from './findings.ts'

export class Auditing {
  readonly #options: AuditOptions
  #thread: Worker | undefined
  #waiting: PromiseWithResolvers<AuditReport> | undefined

  constructor(options: AuditOptions) {
    this.#options = options
  }

  /** What does not agree. One pass at a time: whoever asks meanwhile gets the same answer. */
  pass(): Promise<AuditReport> {
    if (this.#waiting !== undefined) return this.#waiting.promise
    this.#waiting = Promise.withResolvers<AuditReport>()
    this.#thread ??= this.#start()
    this.#tell({ pass: true })
    return this.#waiting.promise
  }

  /** Lets go of the database; a pass under way is given up. */
  async close(): Promise<void> {
    const thread = this.#thread
    this.#thread = undefined
    this.#end(new Error('the audit was given up'))
    if (thread === undefined) return
    await new Promise<void>(resolve => {
      thread.onmessage = (event: MessageEvent<FromAudit>) => 'closed' in event.data && resolve()
      thread.onerror = () => resolve()
      thread.postMessage({ close: true } satisfies ToAudit)
    })
    thread.terminate()
  }

  #start(): Worker {
    const thread = new Worker(new URL('./audit-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<FromAudit>) => {
      if ('report' in event.data) this.#end(event.data.report)
      else if ('failed' in event.data) this.#end(new Error(event.data.failed))
    }
    thread.onerror = event => {
      this.#thread = undefined // the next pass gets another
      this.#end(new Error(event.message))
    }
    thread.postMessage({ open: this.#options } satisfies ToAudit)
    return thread
  }

  #tell(message: ToAudit): void {
    this.#thread?.postMessage(message)
  }

  #end(outcome: AuditReport | Error): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (outcome instanceof Error) waiting?.reject(outcome)
    else waiting?.resolve(outcome)
  }
}

/** One audit of everything, at full speed. */
export async function auditWhole(path: string, { deep = false } = {}): Promise<AuditReport> {
  const auditing = new Auditing({ path, lagMs: 0, rests: false, deep })
  try {
    return await auditing.pass()
  } finally {
    await auditing.close()
  }
}
