// F1 and F2: a port that refuses connections, and a port that does not answer at all.

import type { Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { assert } from '../../../src/base/assert.ts'
import { listenOn } from './listener.ts'
import type { AddressOptions, FaultyAddress } from './place.ts'
import { loopback, originOf } from './place.ts'

/** A connection occupies the port as its local port, so that no other process can listen there. */
export async function openRefusing(options: Partial<AddressOptions> = {}): Promise<FaultyAddress> {
  const { host, port } = { ...loopback, ...options }
  const far = await listenOn(createServer(), { host, port: 0 })
  const near = connect({ port: far.port, host, localPort: port })
  await new Promise<void>((resolve, reject) => {
    near.once('error', reject)
    near.once('connect', () => resolve())
  })
  return {
    origin: originOf('http', host, near.localPort!),
    openSockets: 0,
    async stop() {
      near.destroy()
      await far.stop()
    },
  }
}

/** More connections than any accept queue holds. */
const QUEUED_MAX = 5_000
const UNANSWERED_MS = 200

/** A listener that accepts no connection and whose queue is full: the kernel does not answer further clients. */
export async function openFullQueue(options: Partial<AddressOptions> = {}): Promise<FaultyAddress> {
  const { host, port: wanted } = { ...loopback, ...options }
  const thread = new Worker(new URL('./deaf-thread.ts', import.meta.url).href)
  const wake = new Int32Array(new SharedArrayBuffer(4))
  const listeningPort = new Promise<number>((resolve, reject) => {
    thread.onmessage = ({ data }) => (typeof data === 'number' ? resolve(data) : reject(new Error(String(data))))
  })
  thread.postMessage({ host, port: wanted, wake })
  const port = await listeningPort
  const queued: Socket[] = []
  while (await fillQueue(queued, { host, port })) assert(queued.length < QUEUED_MAX, 'its queue has an end')
  return {
    origin: originOf('http', host, port),
    openSockets: 0,
    async stop() {
      for (const socket of queued) socket.destroy()
      Atomics.store(wake, 0, 1)
      Atomics.notify(wake, 0)
      thread.terminate()
    },
  }
}

async function fillQueue(queued: Socket[], at: AddressOptions): Promise<boolean> {
  const socket = connect(at)
  queued.push(socket)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.on('connect', () => resolve(true))
  socket.on('error', () => resolve(false))
  const timer = setTimeout(() => resolve(false), UNANSWERED_MS)
  return promise.finally(() => clearTimeout(timer))
}
