// Looks at large bodies in a thread of its own: 32 MiB can take the better part of a second.

import { hash } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { findObject } from './json-object.ts'
import { findForm } from './large-form.ts'
import type { FromLargeJson, ToLargeJson } from './large-json-messages.ts'

declare const self: Worker

const LESS_URGENT = 10
/** The system knows none beyond. */
const LEAST_URGENT = 19

/** Where there are fewer cores than threads, calls come first. A system on which that cannot be said is left alone. */
function stepBack(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.min(LEAST_URGENT, getPriority(thread) + LESS_URGENT))
  } catch {
    // It only takes longer for others.
  }
}

stepBack()

self.onmessage = ({ data }: MessageEvent<ToLargeJson>) => {
  const { id, bytes, formType } = data
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const said = formType === undefined ? { found: findObject(body) } : { form: findForm(body, formType) }
  const done: FromLargeJson = { id, ...said, bytes, hash: hash('sha256', bytes, 'hex') }
  postMessage(done, [bytes.buffer as ArrayBuffer])
}
