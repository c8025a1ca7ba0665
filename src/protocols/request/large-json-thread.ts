// The worker thread that parses large bodies: 32 MiB can take most of a second.

import { hash } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { parseBody } from './json-body.ts'
import { parseForm } from './large-form.ts'
import type { LargeBodyReply, LargeBodyRequest } from './large-json-messages.ts'

declare const self: Worker

const NICE_INCREMENT = 10
/** The highest nice value of the system. */
const NICE_MAX = 19

/** Lowers the priority of this thread, so that serving calls comes first if there are fewer cores than threads. */
function lowerPriority(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.min(NICE_MAX, getPriority(thread) + NICE_INCREMENT))
  } catch {
    // Not possible on this system. Other work then only takes longer.
  }
}

lowerPriority()

self.onmessage = ({ data }: MessageEvent<LargeBodyRequest>) => {
  const { id, bytes, formType } = data
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const result = formType === undefined ? { found: parseBody(body) } : { form: parseForm(body, formType) }
  const done: LargeBodyReply = { id, ...result, bytes, hash: hash('sha256', bytes, 'hex') }
  postMessage(done, [bytes.buffer as ArrayBuffer])
}
