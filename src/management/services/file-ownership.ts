// What the configuration file of this gateway (WEIR_CONFIG) describes. It is marked in answers, and other changes of it are
// refused: the next start would undo them. The file is read at each start, so nothing is stored.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { parseTextId } from '../../base/ids.ts'
import type { QueryRunner } from '../../store/engine/store-engine.ts'
import type { Scope } from '../../store/queries/paging.ts'

export class FileOwnership {
  #owned: ReadonlySet<string> = new Set()

  /** By their paths below /api/web: `tiers/pro`, `settings/siteName`. */
  set(owned: Iterable<string>): void {
    this.#owned = new Set(owned)
  }

  has(name: string): boolean {
    return this.#owned.has(name)
  }

  /** The settings of the site that the file has. */
  get settings(): readonly string[] {
    const prefix = 'settings/'
    return [...this.#owned].filter(name => name.startsWith(prefix)).map(name => name.slice(prefix.length))
  }

  /** Throws if the file describes one of these. What somebody may not see is answered as if it were unknown. */
  async refuseChange(names: readonly string[], { scope, queryWorker }: Viewer): Promise<void> {
    for (const owned of names.filter(name => this.#owned.has(name))) {
      if (!(await isVisible(owned, { scope, queryWorker }))) continue
      throw new Refusal('managed_by_file', owned, { hint: hintOf('managed_by_file', { name: owned }) })
    }
  }
}

interface Viewer {
  readonly scope: Scope | null
  readonly queryWorker: Pick<QueryRunner, 'query'>
}

/** Resources of accounts: their query, and the prefix of their ids. */
const scoped = { accounts: ['account', 'acc'], keys: ['key', 'key'], webhooks: ['webhook', 'hook'] } as const

async function isVisible(name: string, { scope, queryWorker }: Viewer): Promise<boolean> {
  const [collection = '', id = ''] = name.split('/')
  if (scope === null || !Object.hasOwn(scoped, collection)) return true
  const [query, prefix] = scoped[collection as keyof typeof scoped]
  return (await queryWorker.query(query, { id: parseTextId(prefix, id) ?? 0, scope })) !== null
}

/** The field of each resource that is in its path. */
const idFields: Readonly<Record<string, string>> = {
  providers: 'id',
  tiers: 'name',
  accounts: 'id',
  keys: 'id',
  channels: 'id',
  routes: 'name',
  limits: 'id',
  prices: 'model',
  webhooks: 'id',
}

interface Marked {
  managedBy?: 'file' | null
  readonly [field: string]: unknown
}

/** Sets `managedBy` in an answer: of one resource, or of a list. */
export function markOwned(path: string, answer: unknown, ownership: Pick<FileOwnership, 'has'>): void {
  const collection = path.split('/')[3] ?? ''
  const field = idFields[collection]
  if (field === undefined || typeof answer !== 'object' || answer === null) return
  const { data } = answer as { readonly data?: readonly Marked[] }
  for (const item of Array.isArray(data) ? data : [answer as Marked]) {
    if (Object.hasOwn(item, 'managedBy')) {
      item.managedBy = ownership.has(`${collection}/${String(item[field])}`) ? 'file' : null
    }
  }
}
