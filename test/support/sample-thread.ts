// A thread for the tests of Thread, with handlers that wait, throw, and end the thread.

import { sendEvent, serveThread } from '../../src/base/threads/serve-thread.ts'

export interface SampleMethods {
  /** The set-up data of this thread, and how many times it was asked for them. */
  describe(): { setup: string; calls: number }
  echo(text: string): string
  /** Answers when `release` is called. */
  wait(): string
  release(text: string): void
  fail(text: string): void
  failLater(text: string): void
  /** Returns a function, which cannot be sent. */
  uncloneable(): unknown
  uncloneableLater(): unknown
  invert(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>
  announce(text: string): void
  /** Sends two events and then sets the first number of shared memory to 1. */
  announceAndMark(mark: Int32Array): void
  /** Throws outside of a handler. */
  die(text: string): void
  exit(code: number): void
}

serveThread<SampleMethods, string>(
  setup => {
    if (setup === 'broken') throw new Error('this set-up is broken')
    let calls = 0
    let held: PromiseWithResolvers<string> | undefined
    return {
      describe: () => ({ setup, calls: ++calls }),
      echo: text => text,
      wait: () => (held = Promise.withResolvers<string>()).promise,
      release: text => held?.resolve(text),
      fail(text) {
        throw new Error(text)
      },
      failLater: async text => {
        await Promise.resolve()
        throw new Error(text)
      },
      uncloneable: () => () => {},
      uncloneableLater: async () => () => {},
      invert: bytes => bytes.map(byte => 255 - byte),
      announce: text => sendEvent(text),
      announceAndMark(mark) {
        sendEvent('first')
        sendEvent('second')
        Atomics.store(mark, 0, 1)
        Atomics.notify(mark, 0)
      },
      die: text =>
        queueMicrotask(() => {
          throw new Error(text)
        }),
      exit: code => process.exit(code),
    }
  },
  output => (output instanceof Uint8Array ? [output.buffer as ArrayBuffer] : []),
)
