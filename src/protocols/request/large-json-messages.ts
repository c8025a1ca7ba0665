// The messages between the reader of large bodies and its worker thread.

import type { Found } from './json-object.ts'
import type { FoundForm } from './large-form.ts'

export interface FromLargeJson extends Pick<ToLargeJson, 'id' | 'bytes'> {
  /** Present for JSON. */
  readonly found?: Found
  readonly form?: FoundForm | undefined
  /** The SHA-256 of the body in hex. */
  readonly hash: string
}

export interface ToLargeJson {
  readonly id: number
  readonly bytes: Uint8Array
  /** The content type of a form. Undefined for JSON. */
  readonly formType: string | undefined
}
