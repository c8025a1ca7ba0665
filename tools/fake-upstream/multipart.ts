// Reads a multipart form: the names and texts of fields, and the sizes of files.

import type { ReceivedRequest } from './request.ts'

export interface FormFile {
  readonly name: string
  readonly type: string
  readonly bytes: number
}

export interface Form {
  readonly fields: ReadonlyMap<string, string>
  readonly files: ReadonlyMap<string, FormFile>
}

const partsMax = 100
const fieldCharsMax = 64 * 1024

/** Undefined for a request that is no multipart form. */
export function readForm(request: ReceivedRequest): Form | undefined {
  const type = request.headers.get('content-type') ?? ''
  const boundary = /^multipart\/form-data;.*boundary="?([^";]{1,200})"?/i.exec(type)?.[1]
  if (boundary === undefined) return undefined
  const form = { fields: new Map<string, string>(), files: new Map<string, FormFile>() }
  const body = Buffer.from(request.body.buffer, request.body.byteOffset, request.body.byteLength)
  const marker = `--${boundary}`
  let at = body.indexOf(marker)
  for (let parts = 0; at >= 0 && parts < partsMax; parts++) {
    const next = body.indexOf(`\r\n${marker}`, at)
    if (next < 0) break
    readPart(body.subarray(at + marker.length + 2, next), form)
    at = next + 2
  }
  return form
}

function readPart(part: Buffer, form: { fields: Map<string, string>; files: Map<string, FormFile> }): void {
  const headEnd = part.indexOf('\r\n\r\n')
  if (headEnd < 0) return
  const head = part.subarray(0, headEnd).toString('utf8')
  const content = part.subarray(headEnd + 4)
  const name = /[; ]name="([^"]*)"/.exec(head)?.[1] ?? ''
  const file = /filename="([^"]*)"/.exec(head)?.[1]
  const type = /^content-type: *(\S+)/im.exec(head)?.[1] ?? 'application/octet-stream'
  const own = form.files.has(name) ? `${name}#${form.files.size}` : name
  if (file === undefined) form.fields.set(name, content.subarray(0, fieldCharsMax).toString('utf8'))
  else form.files.set(own, { name: file, type, bytes: content.length })
}
