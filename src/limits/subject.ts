// Who calls and what, as far as limits care.

export interface Who {
  readonly keyId: number
  readonly accountId: number
  readonly tier: string
  /** The key's own calls a minute, or its tier's. */
  readonly qpm: number
  /** An operator has said how many calls a minute it has: what a tier says of its accounts is not for it. */
  readonly hasOwnLimit?: boolean
}

/** What is limited: a call. */
export interface Subject extends Who {
  /** By which each model has its own. Null where none is called: no limit of tokens or of some models is for that. */
  readonly model: string | null
  /** Without a model: whether a provider is asked. If so it is counted like a call, else only by limits of a minute. */
  readonly asksProvider?: boolean | undefined
  /** All names that it goes by, the one that was asked for first; its own alone if not given. */
  readonly names?: readonly string[] | undefined
  /** What it is taken to use until that is known. */
  readonly tokens: number
}
