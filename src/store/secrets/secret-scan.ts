// The near side of the thread that looks through the database for what rests on which secret. There is one only while
// somebody has something to ask.

import { StoreError } from '../engine/database.ts'
import type { Answered, Asked, FromScan, ScanQuestion, ToScan } from './secret-scan-thread.ts'

export class SecretScan {
  readonly #database: string
  #thread: Worker | undefined
  #last: Promise<unknown> = Promise.resolve()
  #users = 0
  /** Of whoever waits for an answer. */
  #onLost: ((fault: Error) => void) | undefined

  constructor(database: string) {
    this.#database = database
  }

  /** The thread stays until the work is over. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#users++
    try {
      return await work()
    } finally {
      if (--this.#users === 0) this.close()
    }
  }

  /** Whoever waits for an answer gets none. */
  close(): void {
    this.#thread?.terminate()
    this.#thread = undefined
    this.#onLost?.(new StoreError('The look at what rests on secrets was ended.'))
  }

  /** One after the other. Only within `during`. */
  ask<Name extends ScanQuestion>(name: Name, asked: Asked<Name>): Promise<Answered<Name>> {
    const mine = this.#last.then(() => this.#ask({ database: this.#database, name, asked }))
    this.#last = mine.catch(() => {})
    return mine as Promise<Answered<Name>>
  }

  #ask(question: ToScan): Promise<unknown> {
    const thread = (this.#thread ??= new Worker(new URL('./secret-scan-thread.ts', import.meta.url).href))
    return new Promise((resolve, reject) => {
      this.#onLost = reject
      thread.onmessage = ({ data }: MessageEvent<FromScan>) =>
        'answered' in data ? resolve(data.answered) : reject(new StoreError(data.failed))
      thread.onerror = event => reject(new StoreError(event.message))
      thread.postMessage(question)
    })
  }
}
