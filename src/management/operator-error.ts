// The error of operator commands.

/** A command cannot be done. The message is one sentence for the operator. */
export class OperatorError extends Error {}
