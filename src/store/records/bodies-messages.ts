// The messages between the store of bodies and its thread.

export type FromBodies =
  /** `replaced`: how many calls' bodies went for these. */
  | { readonly written: number; readonly accountId: number; readonly replaced?: number; readonly fault?: string }
  /** A text says why they cannot be opened. */
  | { readonly read: CallBodies | string | null }
  /** A text says why not. */
  | { readonly resealed: string | null }
  | { readonly erased: string | null }
  | { readonly closed: true }

export type ToBodies =
  | { readonly open: { readonly path: string; readonly quota: BodiesQuota; readonly secrets: readonly string[] } }
  /** From now on these, the newest first. */
  | { readonly secrets: readonly string[] }
  | { readonly reseal: true }
  | { readonly keep: Keep }
  | { readonly read: number }
  | { readonly forgetBefore: number }
  | { readonly erase: readonly number[] }
  | { readonly close: true }

/** Of what is kept, in bytes on the disk: beyond that the oldest go. */
export interface BodiesQuota {
  readonly ofAccountBytesMax: number
  readonly bytesMax: number
}

export interface BodyPart {
  readonly bytes: Uint8Array
  /** There was more of it. */
  readonly truncated: boolean
}

export interface CallBodies {
  readonly request: BodyPart
  readonly answer: BodyPart
}

/** The request's bytes, and the answer's behind them. */
export interface Keep {
  readonly callId: number
  readonly accountId: number
  readonly bytes: Uint8Array
  readonly requestBytes: number
  readonly truncated: readonly [request: boolean, answer: boolean]
}
