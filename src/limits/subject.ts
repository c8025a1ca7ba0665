// Who calls and what, as far as limits care.

export interface Who {
  readonly keyId: number
  readonly accountId: number
  readonly tier: string
  /** The key's own calls a minute, or its tier's. */
  readonly qpm: number
}

/** What is limited: a call. */
export interface Subject extends Who {
  /** As callers name it. Null where none is called: then only the key's own calls a minute count. */
  readonly model: string | null
  /** What it is taken to use until that is known. */
  readonly tokens: number
}
