// The worker thread that parses large bodies: 32 MiB can take most of a second.

import { hash } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { serveThread } from '../../base/threads/serve-thread.ts'
import { measureAllMedia } from '../media/measure.ts'
import type { ParsedBody } from './json-body.ts'
import { parseBody } from './json-body.ts'
import type { ParsedForm } from './large-form.ts'
import { parseForm } from './large-form.ts'

export interface LargeBodyMethods {
  read(request: LargeBodyRequest): LargeBody
}

/** The memory of `bytes` is transferred in both directions. */
interface LargeBodyRequest {
  readonly bytes: Uint8Array
  /** The content type of a form. Undefined for JSON. */
  readonly formType: string | undefined
}

export interface LargeBody {
  readonly bytes: Uint8Array
  /** Present for JSON. */
  readonly found?: ParsedBody
  readonly form?: ParsedForm | undefined
  /** The SHA-256 of the body in hex. */
  readonly hash: string
}

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

function read({ bytes, formType }: LargeBodyRequest): LargeBody {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const result = formType === undefined ? { found: parseJson(body) } : { form: parseForm(body, formType) }
  return { ...result, bytes, hash: hash('sha256', bytes, 'hex') }
}

function parseJson(body: Buffer): ParsedBody {
  const found = parseBody(body)
  return 'json' in found ? { ...found, media: measureAllMedia(found.json) } : found
}

serveThread<LargeBodyMethods>(
  () => ({ read }),
  ({ bytes }) => [bytes.buffer as ArrayBuffer],
)
