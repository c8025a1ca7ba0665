// An address that fails as a whole, before anything is sent on a socket.

export interface FaultyAddress {
  /** Begins with http:// or https:// and has no path. */
  readonly origin: string
  /** For faults of name resolution: address and port of the name server that must be used. */
  readonly nameServer?: string
  /** The certificate of the authority that signed its certificate. */
  readonly authority?: string
  readonly openSockets: number
  stop(): Promise<void>
}

export interface AddressOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
}

export type OpenAddress = (options?: Partial<AddressOptions>) => Promise<FaultyAddress>

export const loopback: AddressOptions = { host: '127.0.0.1', port: 0 }

export const originOf = (scheme: 'http' | 'https', host: string, port: number): string =>
  `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
