// For properties such as "any input is read, or refused": counts both, so that a test can see that it has reached the
// reader and did not only collect refusals.

import { Refusal } from '../../src/base/errors.ts'

export class Readings {
  read = 0
  refused = 0

  /** Runs a reader, which may fail only by a Refusal. */
  take(run: () => unknown): void {
    try {
      run()
      this.read++
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.refused++
    }
  }
}
