// The line between browsers and a gateway, which a test can cut and mend. Browsers have the address of the line.

import type { Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { freePort } from '../../support/free-port.ts'

export interface Line {
  readonly url: string
  /** Ends all connections, and refuses new ones. */
  cut(): Promise<void>
  mend(): Promise<void>
}

export async function openLine(gatewayUrl: string): Promise<Line> {
  const { hostname, port: gatewayPort } = new URL(gatewayUrl)
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // A connection that is cut is no error of the test.
    return socket.on('error', () => socket.destroy())
  }
  const server = createServer(caller => {
    const gateway = keep(connect(Number(gatewayPort), hostname))
    keep(caller).pipe(gateway).pipe(caller)
    caller.on('close', () => gateway.destroy())
    gateway.on('close', () => caller.destroy())
  })
  const listen = (port: number): Promise<void> => new Promise(resolve => server.listen(port, hostname, resolve))
  // Nobody else gets this port while the line is cut.
  const port = freePort()
  await listen(port)
  return {
    url: `http://${hostname}:${port}`,
    cut: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
    mend: async () => {
      if (!server.listening) await listen(port)
    },
  }
}
