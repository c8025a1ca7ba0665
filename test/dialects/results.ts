// The published table of features for each pair of dialects. It is checked in; the suite computes it again and compares.

import { join } from 'node:path'
import { clients } from './clients/list.ts'
import type { FeatureName } from './features.ts'
import { featureNames } from './features.ts'
import type { Cell, Outcome } from './matrix.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

/** Dialect of the caller → of the upstream → feature → reported losses; `fail` if the feature does not work. */
export type Results = Record<string, Record<string, Partial<Record<FeatureName, readonly string[] | 'fail'>>>>

export const resultsPath = join(import.meta.dir, 'results.json')

/** The client that represents its dialect. */
const representativeOf = (dialect: Dialect) => clients.find(client => client.dialect === dialect)!

/** The cells of all 25 pairs. */
export const publishedCells: readonly Cell[] = dialects.flatMap(from =>
  dialects.flatMap(upstream => featureNames.map(feature => ({ client: representativeOf(from), upstream, feature }))),
)

const representatives = new Set(publishedCells.map(cell => cell.client))

/** Every other client with each feature once, and over all features with every upstream. */
export const selectedCells: readonly Cell[] = clients
  .filter(client => !representatives.has(client))
  .flatMap((client, turn) =>
    featureNames.map((feature, at) => ({ client, feature, upstream: dialects[(turn + at) % dialects.length]! })),
  )

export function resultsOf(outcomes: readonly Outcome[]): Results {
  const results: Results = {}
  for (const { client, upstream, feature, losses, fault } of outcomes) {
    const row = ((results[client.dialect] ??= {})[upstream] ??= {})
    row[feature] = fault === undefined ? losses : 'fail'
  }
  return results
}
