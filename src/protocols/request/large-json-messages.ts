// The messages between the reader of large bodies and its thread.

import type { Found } from './json-object.ts'
import type { FoundForm } from './large-form.ts'

export interface FromLargeJson extends Pick<ToLargeJson, 'id' | 'bytes'> {
  /** Of JSON. */
  readonly found?: Found
  readonly form?: FoundForm | undefined
  /** SHA-256, in hex. */
  readonly hash: string
}

export interface ToLargeJson {
  readonly id: number
  readonly bytes: Uint8Array
  /** Of a form; undefined for JSON. */
  readonly formType: string | undefined
}
