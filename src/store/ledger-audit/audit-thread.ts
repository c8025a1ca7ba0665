// The thread that runs audits. It reads on its own connection, and keeps its sums in memory between passes.

import type { AuditOptions } from './audit.ts'
import { LedgerAudit } from './audit.ts'
import type { AuditReport } from './findings.ts'

export type AuditMessage = { readonly open: AuditOptions } | { readonly pass: true } | { readonly close: true }
export type AuditReply = { readonly report: AuditReport } | { readonly failed: string } | { readonly closed: true }

declare const self: Worker

let options: AuditOptions
let audit: LedgerAudit | undefined

function close(): void {
  audit?.close()
  audit = undefined
}

async function answer(message: AuditMessage): Promise<AuditReply | undefined> {
  if ('close' in message) {
    close()
    return { closed: true }
  }
  if ('open' in message) {
    options = message.open
    return undefined
  }
  audit ??= new LedgerAudit(options)
  return { report: await audit.pass() }
}

self.onmessage = (event: MessageEvent<AuditMessage>) => {
  answer(event.data).then(
    reply => reply !== undefined && postMessage(reply),
    fault => {
      close() // the sums in memory may be incomplete
      postMessage({ failed: fault instanceof Error ? fault.message : 'unknown error' } satisfies AuditReply)
    },
  )
}
