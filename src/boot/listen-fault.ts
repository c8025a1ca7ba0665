// Why the gateway cannot listen at an address, with the setting to change. The runtime has several errors and texts for
// one cause, and names the port also where the host is wrong.

import { ConfigError } from '../config.ts'

interface ListenFault {
  /** The setting to change. */
  readonly setting: string
  readonly message: string
  readonly remedy: string
}

interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** The settings of the address: the gateway's own, or those of its metrics. */
interface ListenSettings {
  readonly host: string
  readonly port: string
}

export const gatewaySettings: ListenSettings = { host: 'HOST', port: 'PORT' }
export const metricsSettings: ListenSettings = { host: 'METRICS_HOST', port: 'METRICS_PORT' }

/** An IPv6 address as in a URL. */
export const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host)

export function explainListenFault(
  { host, port }: ListenAddress,
  settings: ListenSettings,
  fault: unknown,
): ListenFault {
  const { code } = fault as NodeJS.ErrnoException
  const message = `Cannot listen on ${hostInUrl(host)}:${port}`
  if (code === 'EADDRINUSE') {
    const remedy = `Stop the program there (ss -ltnp 'sport = :${port}'), or set another ${settings.port}.`
    return { setting: settings.port, message: `${message}: another program uses this port.`, remedy }
  }
  if (code === 'EACCES' || code === 'EPERM') {
    const remedy = `Set a ${settings.port} from 1024 on, or allow this one (the capability CAP_NET_BIND_SERVICE).`
    return { setting: settings.port, message: `${message}: this user may not use the port.`, remedy }
  }
  const cause = code === undefined ? (fault as Error).message : code
  const remedy = `Set ${settings.host} to an address or a name of this machine, such as 127.0.0.1 or 0.0.0.0.`
  return { setting: settings.host, message: `${message}: this machine has no such address (${cause}).`, remedy }
}

/** An address that cannot be used is a mistake in the configuration. */
export function listenOrFail<T>(address: ListenAddress, settings: ListenSettings, start: () => T): T {
  try {
    return start()
  } catch (fault) {
    const { message, remedy } = explainListenFault(address, settings, fault)
    throw new ConfigError(`${message} ${remedy}`)
  }
}
