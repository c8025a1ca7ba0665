// A unix socket in the data folder, mode 0600: how the command line speaks to a gateway that runs. One request, one
// JSON answer.

import { chmodSync, rmSync } from 'node:fs'

export interface ControlSocket {
  close(): void
}

export class ControlLost extends Error {}

export type Handle = (command: string, input: unknown) => Promise<unknown>

export function listenControl(path: string, handle: Handle): ControlSocket {
  rmSync(path, { force: true }) // left by a process that was killed; the folder's lock is ours by now
  const server = Bun.serve({
    unix: path,
    fetch: async (request, server) => {
      server.timeout(request, 0) // a backup takes as long as it takes
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

/** Nobody is there, and so nothing has been asked. */
const ABSENT = ['ENOENT', 'ECONNREFUSED']

/** Asks a running gateway; undefined when none answers at this socket. */
export async function askControl(path: string, command: string, input: unknown): Promise<unknown> {
  try {
    const sent = { unix: path, method: 'POST', body: JSON.stringify(input), timeout: false }
    const response = await fetch(`http://weir/${command}`, sent as RequestInit)
    return await response.json()
  } catch (fault) {
    if (ABSENT.includes((fault as { code?: string }).code ?? '')) return undefined
    // It may have done what it was asked: whoever asks again at once could have money posted twice.
    throw new ControlLost('The gateway went away before it answered. Look at what it has done before trying again.')
  }
}
