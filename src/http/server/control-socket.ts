// A unix socket in the data folder with mode 0600, through which the command line sends the operator's requests to a
// running gateway. The request is JSON in the body of a POST; the answer has its own status and body.

import { chmodSync, rmSync } from 'node:fs'

export interface ControlSocket {
  close(): void
}

/** The request may have taken effect. Repeating it without checking could post money twice. */
export class ControlConnectionLost extends Error {
  constructor() {
    super(
      'The gateway closed the connection before it answered. Check whether the command took effect before you repeat it.',
    )
  }
}

/** A request of the operator: to an endpoint of the management interface, or a command of this machine. */
export interface ControlRequest {
  readonly method: string
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export type ControlHandler = (request: ControlRequest) => Promise<Response>

export function listenControl(path: string, handle: ControlHandler): ControlSocket {
  rmSync(path, { force: true }) // a killed process may have left it; this process holds the lock of the folder
  const server = Bun.serve({
    unix: path,
    fetch: async (request, server) => {
      server.timeout(request, 0) // no timeout: a backup may take long
      try {
        return await handle((await request.json()) as ControlRequest)
      } catch (fault) {
        const message = fault instanceof Error ? fault.message : 'unknown fault'
        return Response.json({ error: { code: 'gateway_fault', message } }, { status: 500 })
      }
    },
  })
  chmodSync(path, 0o600)
  return { close: () => void server.stop(true) }
}

/** No gateway listens, so the request was not sent. */
const ABSENT = ['ENOENT', 'ECONNREFUSED']

/**
 * Sends a request to a running gateway; undefined if no gateway listens on this socket. Without a signal it waits as
 * long as the gateway needs, such as for a backup.
 */
export async function sendControlRequest(
  path: string,
  request: ControlRequest,
  signal: AbortSignal | null = null,
): Promise<Response | undefined> {
  try {
    const options = { unix: path, method: 'POST', body: JSON.stringify(request), timeout: false, signal }
    return await fetch('http://weir/', options as RequestInit)
  } catch (fault) {
    if (ABSENT.includes((fault as { code?: string }).code ?? '')) return undefined
    throw new ControlConnectionLost()
  }
}
