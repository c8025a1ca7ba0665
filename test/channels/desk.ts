// A gateway whose operators may lead channels to this machine, and providers of their own that the fake upstream plays.

import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { hello, startHarness } from '../support/gateway.ts'
import type { Ask, Told } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

/** Looked for wherever it must not be. */
export const canary = 'sk-canary-stored-0123456789'

export interface ChannelDesk {
  readonly harness: Harness
  readonly ask: Ask
  /** Key of an account with credit. */
  readonly key: string
  stop(): Promise<void>
}

export async function openChannelDesk(options: HarnessOptions = {}): Promise<ChannelDesk> {
  const env = { WEIR_PRIVATE_HOSTS: '127.0.0.1', ...options.env }
  const harness = await startHarness({ ...options, env })
  const ask = await askAsOwner(harness)
  const key = await harness.key({ qpm: 100_000 })
  return { harness, ask, key, stop: () => harness.stop() }
}

const models = [{ id: 'echo', price: { input: '1', output: '2' } }]

/** As a provider file has it, at the fake upstream. */
export const definitionOf = (id: string, url: string, more: object = {}) => ({
  id,
  name: `The ${id}`,
  baseUrl: `${url}/v1`,
  keyEnv: `${id.toUpperCase()}_KEY`,
  sign: 'bearer',
  models,
  baseUrlEnv: `${id.toUpperCase()}_URL`,
  speaks: { 'openai-chat': '/chat/completions' },
  ...more,
})

export async function defineProvider({ ask, harness }: ChannelDesk, id: string, more: object = {}): Promise<Told> {
  return await ask('POST', 'web/providers', { definition: definitionOf(id, harness.upstream.url, more) })
}

/** The ids of those that were made. */
export const idsOf = ({ body }: Told): string[] => (body.data as { id: string }[]).map(({ id }) => id)

export const at = (id: string, more = ''): string => `web/channels/${encodeURIComponent(id)}${more}`

export const say = ({ harness, key }: ChannelDesk, model: string, more: object = {}): Promise<Response> =>
  fetch(`${harness.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: hello, ...more }),
  })

/** Every row of every table, as text. */
export function allRows(harness: Harness): string {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
  try {
    const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]
    const rows = tables.flatMap(({ name }) => db.query(`SELECT * FROM "${name}"`).all() as object[])
    const text = (value: unknown): string =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)
    return rows.map(row => Object.values(row).map(text).join(' ')).join('\n')
  } finally {
    db.close()
  }
}
