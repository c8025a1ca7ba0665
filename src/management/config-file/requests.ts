// The requests with which a configuration file is compared and applied: those of the management interface. The command
// line sends them to a gateway; a gateway that starts with WEIR_CONFIG answers them itself.

import { bounds } from '../../base/bounds.ts'
import type { ControlHandler } from '../../http/server/control-socket.ts'
import { ConfigFileError } from './config-file-error.ts'

export type Fields = Readonly<Record<string, unknown>>

/** A refused request throws an error with the `code` of the refusal and a message for the operator. */
export interface ManagementClient {
  (method: string, path: string, body?: unknown): Promise<Fields>
  get(path: string, query?: Record<string, unknown>): Promise<Fields>
}

/** The gateway refused a request. */
class RefusedRequest extends Error {
  readonly code: string

  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

/** For the process of the gateway itself. */
export function buildClient(handle: ControlHandler): ManagementClient {
  async function send(method: string, path: string, body?: unknown, query?: Record<string, string>): Promise<Fields> {
    const answer = await handle({ method, path, body, ...(query !== undefined && { query }) })
    const json = answer.status === 204 ? {} : ((await answer.json()) as Fields)
    if (answer.status < 400) return json
    const { code, message, sentence } = json.error as { code: string; message: string; sentence?: string }
    throw new RefusedRequest(sentence ?? message, code)
  }
  return Object.assign((method: string, path: string, body?: unknown) => send(method, path, body), {
    get: (path: string, query: Record<string, unknown> = {}) =>
      send(
        'GET',
        path,
        undefined,
        Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)])),
      ),
  })
}

export const isUnknown = (fault: unknown): boolean => (fault as { code?: unknown }).code === 'resource_unknown'

/** The answer; undefined if there is no such thing. */
export async function findOrUndefined(client: ManagementClient, path: string): Promise<Fields | undefined> {
  try {
    return await client.get(path)
  } catch (fault) {
    if (isUnknown(fault)) return undefined
    throw fault
  }
}

/**
 * The rows of a list with exactly this name. Their filter is for the beginning of the name, which a million rows may
 * have, but in the order of names these come first.
 */
export async function listNamed(
  client: ManagementClient,
  path: string,
  { name, ...query }: Record<string, unknown>,
): Promise<readonly Fields[]> {
  const rows: Fields[] = []
  let after: unknown
  do {
    const page = await client.get(path, { ...query, name, sort: 'name', ...(after !== undefined && { after }) })
    const data = page.data as readonly Fields[]
    rows.push(...data.filter(row => row.name === name))
    const isOver = data.some(row => String(row.name).toLowerCase() !== String(name).toLowerCase())
    after = isOver ? undefined : (page.next ?? undefined)
  } while (after !== undefined)
  return rows
}

/** The first page, by name, of a list that may be too long to be read whole. */
export async function firstPage(
  client: ManagementClient,
  path: string,
  query: Record<string, unknown>,
): Promise<readonly Fields[]> {
  const { data } = await client.get(path, { ...query, sort: 'name', limit: bounds.pageRowsMax })
  return data as readonly Fields[]
}

/** All rows of a list. A file cannot describe more than its lists may have. */
export async function listAll(
  client: ManagementClient,
  path: string,
  query: Record<string, unknown> = {},
): Promise<readonly Fields[]> {
  const rows: Fields[] = []
  let after: unknown
  do {
    const page = await client.get(path, { ...query, limit: bounds.pageRowsMax, ...(after !== undefined && { after }) })
    rows.push(...(page.data as Fields[]))
    after = page.next ?? undefined
    if (rows.length > bounds.configEntriesMax) {
      const list = path.slice(path.lastIndexOf('/') + 1)
      throw new ConfigFileError([
        `The gateway has more than ${bounds.configEntriesMax} ${list}, which is more than a file can describe. ` +
          'Leave this list out: weir export --only tiers,limits, for example.',
      ])
    }
  } while (after !== undefined)
  return rows
}
