// How the fake upstream listens.

import type { AddressInfo, Server } from 'node:net'

export const socketOptions = { allowHalfOpen: true, noDelay: true } as const

/** Returns the URL of the server. */
export async function listenOn(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`
}
