// Keys whose funds a test sets to the nano-dollar. They are created in the data folder before a gateway opens it.

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseTextId } from '../../src/base/ids.ts'
import type { Store } from '../../src/boot/open-store.ts'
import { openStore } from '../../src/boot/open-store.ts'
import { readConfig } from '../../src/config.ts'
import type { OperationInput } from '../../src/store/engine/operations.ts'
import type { BudgetSpan } from '../../src/store/ledger/hold-types.ts'
import { operatorOf } from './operator.ts'

export interface Funds {
  readonly credit: string
  readonly name?: string
  readonly tier?: string
  readonly qpm?: number
  readonly strictCap?: boolean
  readonly budgets?: readonly { readonly of: 'key' | 'account'; readonly span: BudgetSpan; readonly cap: bigint }[]
  readonly account?: Omit<OperationInput<'setAccount'>, 'id'>
}

export interface Funded<Name extends string> {
  readonly folder: string
  readonly keys: Readonly<Record<Name, string>>
}

/** The caller removes the folder. */
export async function fundKeys<Name extends string>(wanted: Readonly<Record<Name, Funds>>): Promise<Funded<Name>> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-'))
  const store = await openStore(readConfig({ WEIR_DATA: folder, WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' }))
  const keys: Partial<Record<Name, string>> = {}
  for (const name in wanted) keys[name] = await fundKey(store, wanted[name])
  await store.close()
  return { folder, keys: keys as Record<Name, string> }
}

async function fundKey({ manage, writer }: Store, funds: Funds): Promise<string> {
  const { budgets = [], account, strictCap, ...rest } = funds
  const created = await operatorOf(() => manage).weir('keys create', { tier: 'pro', ...rest })
  const keyId = parseTextId('key', created.id as string)!
  const accountId = parseTextId('acc', created.account as string)!
  if (strictCap) await writer.run('setKey', { id: keyId, strictCap }, { actor: 'test' })
  if (account !== undefined) await writer.run('setAccount', { id: accountId, ...account }, { actor: 'test' })
  for (const { of, span, cap } of budgets) {
    await writer.run('setBudget', { scopeId: of === 'key' ? keyId : accountId, span, cap: `${cap}` }, { actor: 'test' })
  }
  return created.key as string
}
