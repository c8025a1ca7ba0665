// The operator's commands on a data folder of their own, without a gateway: what they answer, refuse and write.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../src/boot/open-store.ts'
import { openStore } from '../../src/boot/open-store.ts'
import { Problem } from '../../src/cli/problem.ts'
import { readConfig } from '../../src/config.ts'
import { openDatabase } from '../support/database.ts'
import { operatorOf } from '../support/operator.ts'

export interface RuleOperator {
  readonly store: Store
  readonly folder: string
  readonly logs: readonly string[]
  run(command: string, input?: object): Promise<Record<string, unknown>>
  /** The message with which a command is refused. */
  refusal(command: string, input?: object): Promise<string>
  /** All stored rules. */
  written(): unknown
  /** Closes the store, and opens it again on the same data. */
  reopen(env?: Record<string, string>): Promise<void>
  close(): Promise<void>
}

/** Two keys of one provider with listed models, one of another, and a provider with any model and no channel. */
export const brook = {
  id: 'brook',
  name: 'Brook',
  baseUrl: 'https://brook.example/v1',
  keyEnv: 'BROOK_KEY',
  baseUrlEnv: 'BROOK_URL',
  speaks: { 'openai-chat': '/chat/completions' },
  sign: 'bearer',
  tags: ['eu'],
  models: ['trout', 'perch', 'a:b@c'].map(id => ({ id, price: { input: '1', output: '2' } })),
}
const pool = { ...brook, id: 'pool', name: 'Pool', keyEnv: 'POOL_KEY', baseUrlEnv: 'POOL_URL', tags: [] }
const open = { ...pool, id: 'open', name: 'Open', keyEnv: 'OPEN_KEY', baseUrlEnv: 'OPEN_URL', openModels: true }
const keys = { BROOK_KEY: 'one,two', POOL_KEY: 'three' }

export function writeProviders(folder: string): void {
  for (const each of [brook, pool, open]) writeFileSync(join(folder, `${each.id}.json`), JSON.stringify(each))
}

export async function openRuleOperator(): Promise<RuleOperator> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-management-'))
  const providers = mkdtempSync(join(tmpdir(), 'weir-management-providers-'))
  writeProviders(providers)
  const logs: string[] = []
  const opened = (env: Record<string, string>): Promise<Store> => {
    const config = {
      WEIR_DATA: folder,
      WEIR_PROVIDERS: providers,
      WEIR_BALLAST_MB: '0',
      WEIR_LOCAL_SERVERS: 'off',
      LOG_LEVEL: 'debug',
      ...env,
    }
    return openStore(readConfig(config), { writeLog: line => void logs.push(line) })
  }
  let store = await opened(keys)
  const operator = operatorOf(() => store.manage)
  return {
    get store() {
      return store
    },
    folder,
    logs,
    run: (command, input = {}) => operator.weir(command, input),
    async refusal(command, input = {}) {
      const fault = await operator.weir(command, input).catch((thrown: unknown) => thrown)
      if (!(fault instanceof Problem)) throw new Error(`not refused: ${JSON.stringify(fault)}`)
      return fault.message
    },
    written() {
      const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
      const all = (table: string): unknown => db.query('SELECT * FROM '.concat(table)).all()
      const rows = ['limit_rule', 'model_route', 'channel', 'api_key'].map(all)
      db.close()
      return rows
    },
    async reopen(env = keys) {
      await store.close()
      store = await opened(env)
    },
    async close() {
      await store.close()
      for (const each of [folder, providers]) rmSync(each, { recursive: true, force: true })
    },
  }
}
