// The operator in this process: requests to the management interface, and the commands of the command line, which send
// the same requests as in a process of their own.

import { cliCommands } from '../../src/cli/commands/commands.ts'
import { buildSend } from '../../src/cli/send.ts'
import type { ControlHandler } from '../../src/http/server/control-socket.ts'

type Answer = Record<string, unknown>

export interface Operator {
  /** A request as the operator; a refusal rejects with its sentence. The query may be part of the path. */
  manage(method: string, path: string, body?: unknown): Promise<Answer>
  /** A command with its arguments by name, such as `weir('keys set', { key, tier: 'pro' })`; returns its answer. */
  weir(command: string, input?: object): Promise<Answer>
}

export const operatorOf = (request: () => ControlHandler): Operator => ({
  async manage(method, path, body) {
    const { pathname, searchParams } = new URL(path, 'http://weir')
    const send = buildSend(request())
    if (method === 'GET') return await send.get(decodeURIComponent(pathname), Object.fromEntries(searchParams))
    return await send(method, decodeURIComponent(pathname), body)
  },
  async weir(command, input = {}) {
    const row = cliCommands[command]
    if (row?.ask === undefined) throw new Error(`There is no command "${command}" that sends requests.`)
    return await row.ask({ ...input }, request())
  },
})
