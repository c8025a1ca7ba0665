// The error of a configuration file that cannot be applied.

/** How many problems are printed at once. */
const SHOWN_MAX = 20

/** Nothing was changed. The message has one line for each problem, with the file, the line and what is allowed. */
export class ConfigFileError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const more = problems.length - SHOWN_MAX
    super([...problems.slice(0, SHOWN_MAX), ...(more > 0 ? [`… and ${more} more problems`] : [])].join('\n'))
    this.name = 'ConfigFileError'
    this.problems = problems
  }
}
