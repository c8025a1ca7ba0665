// A thread that listens and then sleeps, so that no connection in the kernel's queue is ever accepted.

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

declare const self: Worker

interface ListenOptions {
  readonly host: string
  readonly port: number
  /** The thread sleeps while this is 0. */
  readonly wake: Int32Array
}

self.onmessage = ({ data }: MessageEvent<ListenOptions>) => {
  const server = createServer()
  server.on('error', fault => self.postMessage(fault.message))
  server.listen(data.port, data.host, () => {
    self.postMessage((server.address() as AddressInfo).port)
    Atomics.wait(data.wake, 0, 0)
    server.close()
  })
}
