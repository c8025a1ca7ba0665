// The messages between the reader of large bodies and its worker thread.

import type { ParsedBody } from './json-body.ts'
import type { ParsedForm } from './large-form.ts'

export interface LargeBodyReply extends Pick<LargeBodyRequest, 'id' | 'bytes'> {
  /** Present for JSON. */
  readonly found?: ParsedBody
  readonly form?: ParsedForm | undefined
  /** The SHA-256 of the body in hex. */
  readonly hash: string
}

export interface LargeBodyRequest {
  readonly id: number
  readonly bytes: Uint8Array
  /** The content type of a form. Undefined for JSON. */
  readonly formType: string | undefined
}
