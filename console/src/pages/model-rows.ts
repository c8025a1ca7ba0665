// Models and routes as rows of one list, from what everybody may see or from what staff see.

import type { Model, PublicModels, PublicProvider } from '../api/types.ts'

export type ModelStatus = 'up' | 'degraded' | 'down' | 'route' | 'off' | 'forbidden'

export interface ModelRow {
  readonly id: string
  /** Undefined for a route. */
  readonly provider: string | undefined
  readonly providerName: string
  readonly status: ModelStatus
  readonly isFree: boolean
  readonly input: string | undefined
  readonly cacheRead: string | undefined
  readonly output: string | undefined
  readonly contextTokens: number | null
  /** The abilities that are known to be there. */
  readonly can: readonly string[]
  readonly reads: readonly string[]
}

/** The same rows, with those marked that the keys of an account may not use. */
export const markForbidden = (
  rows: readonly ModelRow[],
  isForbidden: ((id: string) => boolean) | undefined,
): readonly ModelRow[] =>
  isForbidden === undefined
    ? rows
    : rows.map(row => (isForbidden(row.id) ? { ...row, status: 'forbidden' as const } : row))

type Providers = readonly Pick<PublicProvider, 'id' | 'name' | 'status'>[]

const noPrice = { isFree: false, input: undefined, cacheRead: undefined, output: undefined }

export function publicRows({ data, names }: PublicModels, providers: Providers): readonly ModelRow[] {
  const byId = new Map(providers.map(provider => [provider.id, provider]))
  const routes = names.map(
    ({ id, contextTokens }): ModelRow => ({
      id,
      provider: undefined,
      providerName: '',
      status: 'route',
      ...noPrice,
      contextTokens,
      can: [],
      reads: [],
    }),
  )
  const models = data.map(({ id, provider, price, contextTokens, can, reads }): ModelRow => {
    const { input, cacheRead, output } = price
    return {
      id,
      provider,
      providerName: byId.get(provider)?.name ?? provider,
      status: byId.get(provider)?.status ?? 'up',
      ...(price.free ? { ...noPrice, isFree: true } : { isFree: false, input, cacheRead, output }),
      contextTokens,
      can: Object.entries(can).flatMap(([name, is]) => (is === true ? [name] : [])),
      reads: reads ?? [],
    }
  })
  return [...routes, ...models]
}

export const staffRow = ({ id, provider, free, price, contextTokens, available }: Model): ModelRow => ({
  id,
  provider,
  providerName: provider,
  status: available ? 'up' : 'off',
  ...(price === null
    ? { ...noPrice, isFree: free }
    : { isFree: false, input: price.rates.input, cacheRead: price.rates.cacheRead, output: price.rates.output }),
  contextTokens,
  can: [],
  reads: [],
})

interface Filter {
  readonly text?: string | undefined
  readonly provider?: string | undefined
  readonly sort?: string | undefined
}

const sortValues: Readonly<Record<string, (row: ModelRow) => number | string>> = {
  id: row => row.id,
  input: row => (row.isFree ? 0 : Number(row.input ?? Number.NaN)),
  output: row => (row.isFree ? 0 : Number(row.output ?? Number.NaN)),
  context: row => row.contextTokens ?? Number.NaN,
}

/** Rows without a value come last, in both directions. */
export function filterRows(rows: readonly ModelRow[], { text, provider, sort }: Filter): readonly ModelRow[] {
  const wanted = text?.toLowerCase()
  const found = rows.filter(
    row =>
      (wanted === undefined || `${row.id} ${row.providerName}`.toLowerCase().includes(wanted)) &&
      (provider === undefined || row.provider === provider),
  )
  const isDown = sort?.startsWith('-') ?? false
  const valueOf = sortValues[(sort ?? '').replace('-', '')]
  if (valueOf === undefined) return found
  return found.toSorted((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)]
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b))
    return (a < b ? -1 : a > b ? 1 : 0) * (isDown ? -1 : 1)
  })
}
