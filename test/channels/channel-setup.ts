// A gateway whose channels may point at this machine, and custom providers that the fake upstream serves.

import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { hello, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

/** A credential. Tests search for it where a secret must not appear. */
export const canary = 'sk-canary-stored-0123456789'

export interface ChannelSetup {
  readonly harness: Harness
  readonly ask: Ask
  /** Key of an account with credit. */
  readonly key: string
  stop(): Promise<void>
}

export async function startChannelSetup(options: HarnessOptions = {}): Promise<ChannelSetup> {
  const env = { WEIR_PRIVATE_HOSTS: '127.0.0.1', ...options.env }
  const harness = await startHarness({ ...options, env })
  const ask = await askAsOwner(harness)
  const key = await harness.key({ qpm: 100_000 })
  return { harness, ask, key, stop: () => harness.stop() }
}

const models = [{ id: 'echo', price: { input: '1', output: '2' } }]

/** A provider definition, as in a provider file, with the address of the fake upstream. */
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

export async function defineProvider(
  { ask, harness }: ChannelSetup,
  id: string,
  more: object = {},
): Promise<ApiAnswer> {
  return await ask('POST', 'web/providers', { definition: definitionOf(id, harness.upstream.url, more) })
}

/** The ids of the channels in an answer. */
export const idsOf = ({ body }: ApiAnswer): string[] => (body.data as { id: string }[]).map(({ id }) => id)

export const channelPath = (id: string, more = ''): string => `web/channels/${encodeURIComponent(id)}${more}`

export const callModel = ({ harness, key }: ChannelSetup, model: string, more: object = {}): Promise<Response> =>
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
