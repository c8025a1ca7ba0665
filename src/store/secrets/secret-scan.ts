// Sends requests to the thread that scans the database for digests and encrypted values by secret. The thread exists
// only while it has work.

import { Thread } from '../../base/threads/thread.ts'
import { StoreError } from '../engine/database.ts'
import type { DataPlace } from '../engine/thread-reads.ts'
import type { SecretScanMethods } from './secret-scan-thread.ts'

export class SecretScan {
  readonly #thread: Thread<SecretScanMethods, DataPlace>
  #users = 0

  constructor(place: DataPlace) {
    this.#thread = new Thread({
      url: new URL('./secret-scan-thread.ts', import.meta.url),
      setup: () => place,
      onFailure: detail => new StoreError(detail),
      onDeath: detail => new StoreError(detail),
    })
  }

  /** Keeps the thread until the work has ended. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#users++
    try {
      return await work()
    } finally {
      if (--this.#users === 0) this.close()
    }
  }

  /** Terminates the thread. Its requests are rejected. */
  close(): void {
    this.#thread.stop(new StoreError('The scan for the use of secrets was stopped.'))
  }

  /** Must be called within `during`. */
  run<Name extends keyof SecretScanMethods>(
    name: Name,
    input: Parameters<SecretScanMethods[Name]>[0],
  ): Promise<ReturnType<SecretScanMethods[Name]>> {
    return this.#thread.run(name, input)
  }
}
