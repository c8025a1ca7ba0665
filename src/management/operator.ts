// Answers the requests of the operator at the command line: requests to the endpoints of the management interface, and
// commands that only make sense on this machine (`/machine/<name>`). They come over the control socket or from this
// process, never over TCP.

import { buildErrorReply, Refusal } from '../base/errors.ts'
import type { ControlHandler, ControlRequest } from '../http/server/control-socket.ts'
import { operator } from './actor.ts'
import type { MachineCommands } from './machine/command.ts'
import type { HandleWebRequest } from './web/dispatch.ts'

const MACHINE = '/machine/'
const MANAGEMENT = '/api/web/'

/** `author`: the name in the audit log of an operator who is not at the command line. */
export function buildOperator(answerWeb: HandleWebRequest, machine: MachineCommands, author?: string): ControlHandler {
  async function answer(request: ControlRequest): Promise<Response> {
    const { path, body = {} } = request
    if (path.startsWith(MANAGEMENT)) return await manage(request)
    const name = path.slice(MACHINE.length)
    const run = path.startsWith(MACHINE) && Object.hasOwn(machine, name) ? machine[name] : undefined
    if (run === undefined) throw new Refusal('path_unknown', path)
    return Response.json(await run(body as Record<string, unknown>))
  }

  async function manage({ method, path, query = {}, body }: ControlRequest): Promise<Response> {
    const response = await answerWeb({
      method,
      path,
      search: new URLSearchParams(query).toString(),
      actor: operator,
      ...(author !== undefined && { author }),
      requestId: 'cli',
      address: '127.0.0.1',
      header: () => undefined,
      readBody: async () => Buffer.from(JSON.stringify(body ?? {})),
    })
    if (response instanceof Response) return response
    const headers = { 'content-type': 'application/json', ...response.headers }
    return new Response(response.body === '' ? null : response.body, { status: response.status, headers })
  }

  return request => answer(request).catch(errorResponse)
}

/** The error as people get it over HTTP. Its last sentence also stands alone, because the command line prints only one. */
function errorResponse(fault: unknown): Response {
  if (!(fault instanceof Refusal)) throw fault
  const { code, status, message, param } = buildErrorReply(fault, '')
  const isUncertain = status >= 500 && fault.extras.hint === undefined
  const warning = `${message} (${fault.message}) Check whether the change was made before you try again.`
  const sentence = fault.extras.hint?.text ?? (isUncertain ? warning : undefined)
  return Response.json({ error: { code, message, param, sentence } }, { status })
}
