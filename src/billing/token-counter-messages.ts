// The messages between the token counter and its thread.

export interface TokenCountReply extends TokenCount {
  readonly id: number
}

/** `text`: UTF-8, transferred to the thread. After `dueMs` (wall clock) the thread counts no further piece. */
export interface TokenCountRequest {
  readonly id: number
  readonly text: Uint8Array
  readonly dueMs: number
}

export interface TokenCount {
  readonly tokens: number
  /** Tokens that a vocabulary may need on top if it supports the scripts of the text less well. */
  readonly extraTokens: number
  /** Bytes that were not counted for lack of time. Each of them may be a token. */
  readonly uncountedBytes: number
}
