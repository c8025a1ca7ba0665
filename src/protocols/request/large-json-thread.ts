// The worker thread that parses large bodies: 32 MiB can take most of a second.

import { hash } from 'node:crypto'
import type { ScanCounts } from '../../base/text/json-bytes.ts'
import { lowerPriority, usedCoreMs } from '../../base/threads/priority.ts'
import { serveThread } from '../../base/threads/serve-thread.ts'
import { measureAllMedia } from '../media/measure.ts'
import { measureExtraBytes } from './extra-bytes.ts'
import type { ParsedBody } from './json-body.ts'
import { parseBody, parseSparseBody } from './json-body.ts'
import type { ParsedForm } from './large-form.ts'
import { parseForm } from './large-form.ts'
import { estimateServingMs } from './serving-cost.ts'

export interface LargeBodyMethods {
  read(request: LargeBodyRequest): ReadBody
}

export interface LargeBodySetup {
  /** Otherwise a body with very many values is returned unread. */
  readonly readsDense: boolean
}

/** The memory of `bytes` is transferred in both directions. */
interface LargeBodyRequest {
  readonly bytes: Uint8Array
  /** The content type of a form. Undefined for JSON. */
  readonly formType: string | undefined
}

export interface LargeBody {
  readonly bytes: Uint8Array
  /** The body has so many values that this thread has not parsed it. */
  readonly isDense?: true
  /** Present for JSON. */
  readonly found?: ParsedBody
  readonly form?: ParsedForm | undefined
  /** The SHA-256 of the body in hex. Absent if the body is dense. */
  readonly hash?: string
}

/** A body, and how long a core was used for it. */
export interface ReadBody {
  readonly body: LargeBody
  readonly workMs: number
}

/** A conversation of 2 MiB stays below; 200,000 empty messages take ten times as long. */
const SPARSE_MS_MAX = 15

const isDense = (counts: ScanCounts): boolean => estimateServingMs(counts, 0) > SPARSE_MS_MAX

function readSparse(request: LargeBodyRequest): LargeBody {
  if (request.formType !== undefined) return read(request)
  const found = parseSparseBody(bufferOf(request), isDense)
  return found === undefined
    ? { bytes: request.bytes, isDense: true }
    : withHash(request, { found: measured(found, request) })
}

function read(request: LargeBodyRequest): LargeBody {
  const body = bufferOf(request)
  const { formType } = request
  return withHash(
    request,
    formType === undefined ? { found: measured(parseBody(body), request) } : { form: parseForm(body, formType) },
  )
}

const bufferOf = ({ bytes }: LargeBodyRequest): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const withHash = ({ bytes }: LargeBodyRequest, result: Pick<LargeBody, 'found' | 'form'>): LargeBody => ({
  ...result,
  bytes,
  hash: hash('sha256', bytes, 'hex'),
})

function measured(found: ParsedBody, { bytes }: LargeBodyRequest): ParsedBody {
  if (!('json' in found)) return found
  const { json } = found
  return { ...found, media: measureAllMedia(json), extraBytes: measureExtraBytes(json, bytes.byteLength) }
}

serveThread<LargeBodyMethods, LargeBodySetup>(
  ({ readsDense }) => {
    lowerPriority()
    const readBody = readsDense ? read : readSparse
    return {
      read(request) {
        const sinceMs = usedCoreMs()
        return { body: readBody(request), workMs: usedCoreMs() - sinceMs }
      },
    }
  },
  ({ body }) => [body.bytes.buffer as ArrayBuffer],
)
