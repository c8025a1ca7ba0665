// Starts a listener of node:net or node:tls, counts its sockets, and closes them when it stops.

import type { AddressInfo, Server, Socket } from 'node:net'
import type { AddressOptions } from './place.ts'

export interface Listener {
  readonly port: number
  readonly openSockets: number
  stop(): Promise<void>
}

export async function listenOn(server: Server, { host, port }: AddressOptions): Promise<Listener> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  return {
    port: (server.address() as AddressInfo).port,
    get openSockets() {
      return sockets.size
    },
    async stop() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
