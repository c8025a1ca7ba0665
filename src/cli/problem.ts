// The errors of commands. They are in a file of their own because every command needs them, and some need nothing else.

/** An error that the user can fix. It is printed as one sentence, without a stack. */
export class Problem extends Error {}

/** The arguments of the command are wrong. */
export class UsageProblem extends Problem {}

/** The command failed after it had done something that must be known. With --json, the answer is printed all the same. */
export class PartialFailure extends Problem {
  readonly answer: Record<string, unknown>

  constructor(message: string, answer: Record<string, unknown>) {
    super(message)
    this.answer = answer
  }
}

/** The gateway refused a request. */
export class RequestProblem extends Problem {
  readonly code: string

  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}
