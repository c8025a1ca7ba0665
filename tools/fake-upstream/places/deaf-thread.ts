// Listens and then sleeps, so that nobody accepts what the kernel queues: a thread of its own, because it must not run.

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

declare const self: Worker

interface Told {
  readonly host: string
  readonly port: number
  /** Ends the sleep when it is no longer 0. */
  readonly wake: Int32Array
}

self.onmessage = ({ data }: MessageEvent<Told>) => {
  const server = createServer()
  server.on('error', fault => self.postMessage(fault.message))
  server.listen(data.port, data.host, () => {
    self.postMessage((server.address() as AddressInfo).port)
    Atomics.wait(data.wake, 0, 0)
    server.close()
  })
}
