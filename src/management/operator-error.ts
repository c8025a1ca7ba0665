// An operator's mistake, described in one sentence.

/** What the operator asked cannot be done, in a sentence for the terminal. */
export class OperatorError extends Error {}
