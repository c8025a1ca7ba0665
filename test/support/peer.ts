// A TCP server whose sockets a test controls itself, for behaviour that no script of the fake upstream can produce.

import net from 'node:net'

export interface Peer {
  readonly port: number
  readonly url: string
  /** All sockets that were ever accepted. */
  readonly sockets: readonly net.Socket[]
  /** What each socket has received so far, one character a byte. */
  readonly received: readonly string[]
  /** How many sockets are open. */
  readonly openCount: number
  stop(): Promise<void>
}

/** Calls back with each piece that arrives; `all` is everything that this socket has received. */
export async function startPeer(
  onData: (socket: net.Socket, all: string, index: number) => void,
  onAccept: (socket: net.Socket) => void = () => {},
): Promise<Peer> {
  const sockets: net.Socket[] = []
  const received: string[] = []
  const server = net.createServer(socket => {
    const index = sockets.push(socket) - 1
    received.push('')
    socket.on('error', () => {})
    socket.on('data', (data: Buffer) => {
      received[index] += data.toString('latin1')
      onData(socket, received[index]!, index)
    })
    onAccept(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    sockets,
    received,
    get openCount() {
      return sockets.filter(socket => !socket.destroyed).length
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
