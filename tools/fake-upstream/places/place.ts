// An address that is at fault as a whole, before anything is said on a socket.

export interface FaultyPlace {
  /** http:// or https://, and no path. */
  readonly origin: string
  /** Who must be asked for its name, where the fault lies with names: address and port. */
  readonly nameServer?: string
  /** The authority that its certificate would be trusted by, if nothing else were wrong with it. */
  readonly authority?: string
  readonly openSockets: number
  stop(): Promise<void>
}

export interface PlaceOptions {
  readonly host: string
  /** Any free one if 0. */
  readonly port: number
}

export type OpenPlace = (options?: Partial<PlaceOptions>) => Promise<FaultyPlace>

export const loopback: PlaceOptions = { host: '127.0.0.1', port: 0 }

export const originOf = (scheme: 'http' | 'https', host: string, port: number): string =>
  `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
