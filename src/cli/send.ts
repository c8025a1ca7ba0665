// Sends management requests for a command and reads the answers. An error names the option of the command instead of the
// field of the request.

import type { ControlHandler, ControlRequest } from '../http/server/control-socket.ts'
import { ControlConnectionLost } from '../http/server/control-socket.ts'
import type { CommandFields } from './connect.ts'
import { Problem, RequestProblem } from './problem.ts'

export interface Send {
  /** Returns the body of the answer; an answer without a body is an empty object. */
  (method: string, path: string, body?: unknown): Promise<CommandFields>
  get(path: string, query?: CommandFields): Promise<CommandFields>
  /** Returns the answer itself, for a file that is too large for the memory. */
  open(request: ControlRequest): Promise<Response>
  /** Runs a command of the machine. */
  machine(name: string, input?: CommandFields): Promise<CommandFields>
}

export interface ErrorTexts {
  /** What the user typed for each field of the request, such as `--bodies` for `keepsBodies`. */
  readonly names?: Readonly<Record<string, string>>
  /** The sentence for an id or a name that does not exist. */
  readonly unknown?: string | undefined
}

export function buildSend(request: ControlHandler, { names = {}, unknown }: ErrorTexts = {}): Send {
  async function open(sent: ControlRequest): Promise<Response> {
    const answer = await request(sent)
    if (answer.status < 400) return answer
    const { error } = (await readJson(answer)) as { error?: { code: string; message: string; sentence?: string } }
    if (error === undefined) throw new Problem('The running gateway is of another version of Weir. Restart it.')
    // An empty id makes another path.
    const isUnknown = error.code === 'resource_unknown' || error.code === 'path_unknown'
    const message = isUnknown ? (unknown ?? error.message) : error.message
    throw new RequestProblem(withNames(withoutBody(error.sentence ?? message), names), error.code)
  }
  const read = async (answer: Response): Promise<CommandFields> => (answer.status === 204 ? {} : await readJson(answer))
  const send = async (method: string, path: string, body?: unknown): Promise<CommandFields> =>
    read(await open({ method, path, body }))
  return Object.assign(send, {
    get: async (path: string, query: CommandFields = {}) =>
      read(await open({ method: 'GET', path, query: queryOf(query) })),
    open,
    machine: (name: string, input: CommandFields = {}) => send('POST', `/machine/${name}`, input),
  })
}

async function readJson(answer: Response): Promise<CommandFields> {
  try {
    return JSON.parse(await answer.text(), withoutHints) as CommandFields
  } catch {
    throw new ControlConnectionLost()
  }
}

/** The command line shows sentences, which answers also have as data. */
const withoutHints = (name: string, value: unknown): unknown => (/[a-z]Hints?$/.test(name) ? undefined : value)

export const queryOf = (query: CommandFields): Record<string, string> =>
  Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )

/** A rule about several fields is one of the body, which nobody who types a command has written. */
const withoutBody = (text: string): string =>
  text.replace(/^The body is not valid: (.)/, (_, first: string) => first.toUpperCase())

/** `members.0.weight` becomes `<members> (weight)`. */
function withNames(text: string, names: Readonly<Record<string, string>>): string {
  const fields = /(?:the (?:required )?(?:field|query parameter|path segment) )?"([A-Za-z]+)((?:\.\w+)*)"/gi
  return text.replaceAll(fields, (all, field: string, rest: string) => {
    if (!Object.hasOwn(names, field)) return all
    const inner = rest.split('.').filter(part => !/^\d*$/.test(part))
    return inner.length === 0 ? names[field]! : `${names[field]!} (${inner.join('.')})`
  })
}

const ROWS_DEFAULT = 50

export type ListFields = CommandFields & { readonly data: readonly CommandFields[] }

/** Requests pages of a list until there are enough rows: a page may be shorter than `limit`. */
export async function getPages(
  send: Send,
  path: string,
  { limit = ROWS_DEFAULT, ...query }: CommandFields,
): Promise<ListFields> {
  let answer = await send.get(path, { ...query, limit })
  const data = [...(answer.data as CommandFields[])]
  while (answer.next !== null && data.length < Number(limit)) {
    answer = await send.get(path, { ...query, after: answer.next, limit: Number(limit) - data.length })
    data.push(...(answer.data as CommandFields[]))
  }
  return { ...answer, data }
}

/** Requests all pages of a list that cannot be long, such as the limits or the channels. */
export const getAll = (send: Send, path: string, query: CommandFields = {}): Promise<ListFields> =>
  getPages(send, path, { ...query, limit: Number.MAX_SAFE_INTEGER })
