// What the writer is asked to do with records that are over: the log of them, and deletion by rule.

export interface RecordOperations {
  /** Rows of the log below this one, some at a time. */
  trimLog: { input: { readonly below: number }; result: { done: 'trimmed'; count: number } }
}
