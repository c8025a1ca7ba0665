// A unix socket in the data folder with mode 0600, through which the command line sends commands to a running gateway.
// Each request gets one JSON answer.

import { chmodSync, rmSync } from 'node:fs'

export interface ControlSocket {
  close(): void
}

export class ControlConnectionLost extends Error {}

export type ControlHandler = (command: string, input: unknown) => Promise<unknown>

export function listenControl(path: string, handle: ControlHandler): ControlSocket {
  rmSync(path, { force: true }) // a killed process may have left it; this process holds the lock of the folder
  const server = Bun.serve({
    unix: path,
    fetch: async (request, server) => {
      server.timeout(request, 0) // no timeout: a backup may take long
      const command = new URL(request.url).pathname.slice(1)
      try {
        return Response.json(await handle(command, await request.json()))
      } catch (fault) {
        return Response.json({ problem: fault instanceof Error ? fault.message : 'unknown fault' }, { status: 400 })
      }
    },
  })
  chmodSync(path, 0o600)
  return { close: () => void server.stop(true) }
}

/** No gateway listens, so the command was not sent. */
const ABSENT = ['ENOENT', 'ECONNREFUSED']

/** Sends a command to a running gateway; undefined if no gateway listens on this socket. */
export async function sendControlCommand(path: string, command: string, input: unknown): Promise<unknown> {
  try {
    const options = { unix: path, method: 'POST', body: JSON.stringify(input), timeout: false }
    const response = await fetch(`http://weir/${command}`, options as RequestInit)
    return await response.json()
  } catch (fault) {
    if (ABSENT.includes((fault as { code?: string }).code ?? '')) return undefined
    // The command may have taken effect. Repeating it without checking could post money twice.
    throw new ControlConnectionLost(
      'The gateway closed the connection before it answered. Check whether the command took effect before you repeat it.',
    )
  }
}
