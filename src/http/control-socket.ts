// A unix socket in the data folder, mode 0600: how the command line speaks to a gateway that runs. One request, one
// JSON answer.

import { chmodSync, rmSync } from 'node:fs'

export interface ControlSocket {
  close(): void
}

export type Handle = (command: string, input: unknown) => Promise<unknown>

export function listenControl(path: string, handle: Handle): ControlSocket {
  rmSync(path, { force: true }) // left by a process that was killed; the folder's lock is ours by now
  const server = Bun.serve({
    unix: path,
    fetch: async request => {
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

/** Asks a running gateway; undefined when none answers at this socket. */
export async function askControl(path: string, command: string, input: unknown): Promise<unknown> {
  let response: Response
  try {
    response = await fetch(`http://weir/${command}`, { unix: path, method: 'POST', body: JSON.stringify(input) })
  } catch {
    return undefined
  }
  return await response.json()
}
