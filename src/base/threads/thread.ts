// A worker thread that answers numbered requests. The first request starts it. When it dies, all waiting requests are
// rejected, and the next request starts another thread. A use that must not continue then remembers it in `onDeath`.

import type { FromThread, ThreadMethodName, ThreadMethods, ToThread } from './serve-thread.ts'

export interface ThreadOptions<Methods, Setup, ThreadEvent> {
  readonly url: string | URL
  /** Returns the data for `build` of serveThread. Called at each start of a thread. */
  setup?(): Setup
  /** The thread is stopped after this time without requests. */
  readonly idleMs?: number
  /** The thread does not keep the process alive. */
  readonly isUnreferenced?: boolean
  /** Called for each event that the thread sends. */
  onEvent?(event: ThreadEvent): void
  /** Called when a handler has thrown. Returns the error for the request; by default an Error with the same text. */
  onFailure?(detail: string, name: ThreadMethodName<Methods>): Error
  /** Called when the thread has died. Returns the error for all waiting requests; by default an Error with the text. */
  onDeath?(detail: string): Error
}

export interface ThreadRequestOptions {
  /** Buffers of the input that are transferred instead of copied. The caller cannot use them any more. */
  readonly transfer?: ArrayBuffer[]
  /** After `ms` the request is rejected with the error. The thread continues, unless `error` stops it. */
  readonly timeout?: { readonly ms: number; error(): Error }
}

interface WaitingRequest<Name> {
  readonly name: Name
  readonly timer: ReturnType<typeof setTimeout> | undefined
  resolve(output: unknown): void
  reject(fault: Error): void
}

export class Thread<Methods extends ThreadMethods<Methods>, Setup = undefined, ThreadEvent = never> {
  readonly #options: ThreadOptions<Methods, Setup, ThreadEvent>
  readonly #waiting = new Map<number, WaitingRequest<ThreadMethodName<Methods>>>()
  #worker: Worker | undefined
  #hasAnswered = false
  #idleTimer: ReturnType<typeof setTimeout> | undefined
  #lastId = 0

  constructor(options: ThreadOptions<Methods, Setup, ThreadEvent>) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  /** Whether the running thread has answered a request. Until then a request may have to wait for its start. */
  get hasAnswered(): boolean {
    return this.#hasAnswered
  }

  /** Starts the thread if it is not running. */
  start(): void {
    this.#worker ??= this.#open()
  }

  run<Name extends ThreadMethodName<Methods>>(
    name: Name,
    input: Parameters<Methods[Name]>[0],
    { transfer = [], timeout }: ThreadRequestOptions = {},
  ): Promise<ReturnType<Methods[Name]>> {
    const id = ++this.#lastId
    this.#worker ??= this.#open()
    this.#worker.postMessage([id, name, input] satisfies ToThread, transfer)
    clearTimeout(this.#idleTimer)
    return new Promise((resolve, reject) => {
      const timer = timeout && setTimeout(() => this.#take(id)?.reject(timeout.error()), timeout.ms)
      this.#waiting.set(id, { name, timer, resolve: resolve as (output: unknown) => void, reject })
    })
  }

  /** Rejects all waiting requests. The thread still carries them out, but its answers are ignored. */
  rejectWaiting(fault: Error): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { timer, reject } of waiting) {
      clearTimeout(timer)
      reject(fault)
    }
  }

  /** Terminates the thread and rejects all waiting requests. The next request starts another thread. */
  stop(fault = new Error('the thread was stopped')): void {
    this.#terminate()
    this.rejectWaiting(fault)
  }

  #open(): Worker {
    const { url, setup, isUnreferenced } = this.#options
    const worker = new Worker(url)
    worker.onmessage = ({ data }: MessageEvent<FromThread>) => this.#receive(data)
    const onEnd = (detail: string): void => {
      if (this.#worker !== worker) return // it was stopped, or its error event has come already
      this.#terminate()
      this.rejectWaiting(this.#options.onDeath?.(detail) ?? new Error(detail))
    }
    worker.onerror = event => onEnd(event.message)
    worker.addEventListener('close', ({ code }) => onEnd(`the thread has ended with code ${code}`))
    if (isUnreferenced) worker.unref()
    worker.postMessage(setup?.())
    return worker
  }

  #receive([id, output, fault]: FromThread): void {
    if (id === 0) return this.#options.onEvent?.(output as ThreadEvent)
    this.#hasAnswered = true
    const request = this.#take(id)
    if (request === undefined) return // it has timed out
    if (fault === undefined) request.resolve(output)
    else request.reject(this.#options.onFailure?.(fault, request.name) ?? new Error(fault))
  }

  #take(id: number): WaitingRequest<ThreadMethodName<Methods>> | undefined {
    const request = this.#waiting.get(id)
    if (request === undefined) return undefined
    this.#waiting.delete(id)
    clearTimeout(request.timer)
    if (this.#options.idleMs !== undefined && this.#waiting.size === 0) {
      this.#idleTimer = setTimeout(() => this.stop(), this.#options.idleMs)
      this.#idleTimer.unref()
    }
    return request
  }

  #terminate(): void {
    clearTimeout(this.#idleTimer)
    this.#worker?.terminate()
    this.#worker = undefined
    this.#hasAnswered = false
  }
}
