// The thread that runs audits. It reads on its own connection, and keeps its sums in memory between passes.

import type { AuditOptions } from './audit.ts'
import { Audit } from './audit.ts'
import type { AuditReport } from './findings.ts'

export type ToAudit = { readonly open: AuditOptions } | { readonly pass: true } | { readonly close: true }
export type FromAudit = { readonly report: AuditReport } | { readonly failed: string } | { readonly closed: true }

declare const self: Worker

let options: AuditOptions
let audit: Audit | undefined

function close(): void {
  audit?.close()
  audit = undefined
}

async function answer(message: ToAudit): Promise<FromAudit | undefined> {
  if ('close' in message) {
    close()
    return { closed: true }
  }
  if ('open' in message) {
    options = message.open
    return undefined
  }
  audit ??= new Audit(options)
  return { report: await audit.pass() }
}

self.onmessage = (event: MessageEvent<ToAudit>) => {
  answer(event.data).then(
    reply => reply !== undefined && postMessage(reply),
    fault => {
      close() // the sums in memory may be incomplete
      postMessage({ failed: fault instanceof Error ? fault.message : 'unknown error' } satisfies FromAudit)
    },
  )
}
