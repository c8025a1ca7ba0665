// An HTTP proxy on real sockets: opens tunnels, forwards requests, and misbehaves if configured. Whatever host it is
// asked for, it connects to loopback at the port of the host: it resolves names in its own way.

import net from 'node:net'

export interface ProxyServer {
  readonly port: number
  /** The URL, with a name and a password before the host, if given. */
  url(credentials?: string): string
  /** The head of each request that the proxy understood. */
  readonly heads: readonly string[]
  /** Everything that the proxy received, tunnels included. */
  readonly received: string
  readonly openCount: number
  stop(): Promise<void>
}

export interface ProxyOptions {
  /** `name:password` that the proxy requires. */
  readonly credentials?: string
  /** Answers in its own way; further bytes are not for a tunnel then. */
  readonly misbehave?: (socket: net.Socket, head: string) => void
}

const REQUEST = /^(\w+) (?:http:\/\/)?([^/ ]+)(\S*) HTTP\/1\.1\r\n/

export async function startProxy({ credentials, misbehave }: ProxyOptions = {}): Promise<ProxyServer> {
  const heads: string[] = []
  const sockets: net.Socket[] = []
  let received = ''
  const wanted = credentials === undefined ? '' : `Basic ${Buffer.from(credentials).toString('base64')}`

  function handleHead(socket: net.Socket, text: string): net.Socket | undefined {
    heads.push(text.slice(0, text.indexOf('\r\n\r\n') + 4))
    if (misbehave !== undefined) return void misbehave(socket, heads.at(-1)!)
    if (wanted !== '' && !text.includes(`\r\nProxy-Authorization: ${wanted}\r\n`)) {
      return void socket.end('HTTP/1.1 407 Who\r\nproxy-authenticate: Basic realm="x"\r\ncontent-length: 0\r\n\r\n')
    }
    const [, method, authority] = REQUEST.exec(text)!
    const upstream = net.connect(Number(authority!.split(':').at(-1)), '127.0.0.1')
    upstream.on('error', () => socket.destroy())
    upstream.on('data', data => void socket.write(data))
    upstream.on('close', () => socket.end())
    socket.on('close', () => upstream.destroy())
    if (method === 'CONNECT') socket.write('HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n')
    else upstream.write(passedOn(text), 'latin1')
    return upstream
  }

  const server = net.createServer(socket => {
    let upstream: net.Socket | undefined
    let isTunnel = false
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', data => {
      const text = data.toString('latin1')
      received += text
      if (upstream === undefined) {
        upstream = handleHead(socket, text)
        isTunnel = text.startsWith('CONNECT')
        return
      }
      if (!isTunnel) heads.push(text.slice(0, text.indexOf('\r\n\r\n') + 4))
      upstream.write(isTunnel ? data : Buffer.from(passedOn(text), 'latin1'))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  return {
    port,
    url: (given = credentials) => `http://${given === undefined ? '' : `${given}@`}127.0.0.1:${port}`,
    heads,
    get received() {
      return received
    },
    get openCount() {
      return sockets.filter(socket => !socket.destroyed).length
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** The request as the upstream receives it: with the path alone, and without the proxy's headers. */
const passedOn = (text: string): string =>
  text.replace(REQUEST, '$1 $3 HTTP/1.1\r\n').replace(/\r\nProxy-Authorization: [^\r]*/, '')
