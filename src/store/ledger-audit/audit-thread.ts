// The thread that audits: it reads on a connection of its own, and keeps in memory what it has added up.

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
      close() // what was added up so far may be half of something
      postMessage({ failed: fault instanceof Error ? fault.message : 'unknown fault' } satisfies FromAudit)
    },
  )
}
