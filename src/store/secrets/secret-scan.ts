// Sends requests to the thread that scans the database for digests and encrypted values by secret. The thread exists
// only while it has work.

import { StoreError } from '../engine/database.ts'
import type {
  SecretScanInput,
  SecretScanMessage,
  SecretScanName,
  SecretScanReply,
  SecretScanResult,
} from './secret-scan-thread.ts'

export class SecretScan {
  readonly #database: string
  #thread: Worker | undefined
  #last: Promise<unknown> = Promise.resolve()
  #users = 0
  /** Rejects the running request. */
  #rejectRunning: ((fault: Error) => void) | undefined

  constructor(database: string) {
    this.#database = database
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

  /** Terminates the thread. The running request is rejected. */
  close(): void {
    this.#thread?.terminate()
    this.#thread = undefined
    this.#rejectRunning?.(new StoreError('The scan for the use of secrets was stopped.'))
  }

  /** Runs one request after the other. Must be called within `during`. */
  run<Name extends SecretScanName>(name: Name, asked: SecretScanInput<Name>): Promise<SecretScanResult<Name>> {
    const result = this.#last.then(() => this.#send({ database: this.#database, name, input: asked }))
    this.#last = result.catch(() => {})
    return result as Promise<SecretScanResult<Name>>
  }

  #send(question: SecretScanMessage): Promise<unknown> {
    const thread = (this.#thread ??= new Worker(new URL('./secret-scan-thread.ts', import.meta.url).href))
    return new Promise((resolve, reject) => {
      this.#rejectRunning = reject
      thread.onmessage = ({ data }: MessageEvent<SecretScanReply>) =>
        'answered' in data ? resolve(data.answered) : reject(new StoreError(data.failed))
      thread.onerror = event => reject(new StoreError(event.message))
      thread.postMessage(question)
    })
  }
}
