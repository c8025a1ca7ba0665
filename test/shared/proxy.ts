// A TCP proxy in front of PostgreSQL, so that a test can cut the connections of one gateway, or make them silent or slow.

import net from 'node:net'

/** `silent`: nothing passes and nothing is closed, as when a network drops packets. */
export type ProxyMode = 'open' | 'refusing' | 'silent' | 'slow'

const SLOW_MS = 300

export class Proxy {
  readonly #server: net.Server
  readonly #pairs = new Set<readonly [net.Socket, net.Socket]>()
  #mode: ProxyMode = 'open'

  private constructor(socket: string) {
    this.#server = net.createServer(client => this.#join(client, socket))
  }

  /** `socket`: the path of the unix socket of the server. */
  static async open(socket: string): Promise<Proxy> {
    const proxy = new Proxy(socket)
    await new Promise<void>(resolve => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port
  }

  set(mode: ProxyMode): void {
    const wasSilent = this.#mode === 'silent'
    this.#mode = mode
    if (mode === 'refusing') return this.cut()
    for (const pair of this.#pairs)
      for (const side of pair) mode === 'silent' ? side.pause() : wasSilent && side.resume()
  }

  /** Resets all connections. New ones are possible at once. */
  cut(): void {
    for (const [client, server] of this.#pairs) {
      client.resetAndDestroy()
      server.destroy()
    }
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #join(client: net.Socket, socket: string): void {
    if (this.#mode === 'refusing') return void client.resetAndDestroy()
    const server = net.connect(socket)
    const pair = [client, server] as const
    this.#pairs.add(pair)
    for (const [from, to] of [pair, [server, client]] as const) {
      from.on('data', (data: Buffer) => this.#pass(data, to))
      from.on('error', () => {})
      from.on('close', () => {
        this.#pairs.delete(pair)
        to.destroy()
      })
      if (this.#mode === 'silent') from.pause()
    }
  }

  /** Delays all data by the same time, so that it keeps its order. */
  #pass(data: Buffer, to: net.Socket): void {
    if (this.#mode === 'slow') setTimeout(() => to.write(data), SLOW_MS)
    else to.write(data)
  }
}
