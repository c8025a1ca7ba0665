// The messages between the token counter and its thread.

export interface FromCounter extends TokenCount {
  readonly id: number
}

/** Bytes of UTF-8 in memory of the thread's own. What is begun after `dueMs`, by the wall clock, is not counted. */
export interface ToCounter {
  readonly id: number
  readonly text: Uint8Array
  readonly dueMs: number
}

export interface TokenCount {
  readonly tokens: number
  /** What a vocabulary may need on top that knows the scripts of the text less well. */
  readonly spare: number
  /** What there was no time to count; each byte may be a token. */
  readonly uncountedBytes: number
}
