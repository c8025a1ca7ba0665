// The types of the messages between the body store and its thread.

export type BodiesReply =
  /** `replaced`: of how many calls the bodies were deleted to make room. */
  | { readonly written: number; readonly accountId: number; readonly replaced?: number; readonly fault?: string }
  /** A string says why the bodies cannot be decrypted. */
  | { readonly read: CallBodies | string | null }
  /** A string says why encrypting or deleting failed; null: it succeeded. */
  | { readonly resealed: string | null }
  | { readonly erased: string | null }
  | { readonly closed: true }

export type BodiesMessage =
  | { readonly open: { readonly path: string; readonly quota: BodiesQuota; readonly secrets: readonly string[] } }
  /** The secrets to use from now on, newest first. */
  | { readonly secrets: readonly string[] }
  | { readonly reseal: true }
  | { readonly keep: BodiesToStore }
  | { readonly read: number }
  | { readonly forgetBefore: number }
  | { readonly erase: readonly number[] }
  | { readonly close: true }

/** The limits of the stored bodies in bytes on the disk. Beyond them the oldest bodies are deleted. */
export interface BodiesQuota {
  readonly ofAccountBytesMax: number
  readonly bytesMax: number
}

export interface BodyPart {
  readonly bytes: Uint8Array
  /** The body was longer than `bytes`. */
  readonly truncated: boolean
}

export interface CallBodies {
  readonly request: BodyPart
  readonly answer: BodyPart
}

/** The bodies of a call to be stored: `bytes` has the request, followed by the answer. */
export interface BodiesToStore {
  readonly callId: number
  readonly accountId: number
  readonly bytes: Uint8Array
  readonly requestBytes: number
  readonly truncated: readonly [request: boolean, answer: boolean]
}
