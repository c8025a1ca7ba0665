// The published table: which pair of dialects can do what. It is checked in; the suite computes it anew and compares.

import { join } from 'node:path'
import { clients } from './clients/list.ts'
import type { FeatureName } from './features.ts'
import { featureNames } from './features.ts'
import type { Cell, Outcome } from './matrix.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

/** The caller's dialect → the upstream's → the feature → what is said to be lost; `fail` where it does not work. */
export type Results = Record<string, Record<string, Partial<Record<FeatureName, readonly string[] | 'fail'>>>>

export const resultsPath = join(import.meta.dir, 'results.json')

/** The client that stands for its dialect. */
const standsFor = (dialect: Dialect) => clients.find(client => client.dialect === dialect)!

/** Of all 25 pairs. */
export const publishedCells: readonly Cell[] = dialects.flatMap(from =>
  dialects.flatMap(upstream => featureNames.map(feature => ({ client: standsFor(from), upstream, feature }))),
)

const standing = new Set(publishedCells.map(cell => cell.client))

/** Every other client once with each feature and, over the features, with every upstream. */
export const selectedCells: readonly Cell[] = clients
  .filter(client => !standing.has(client))
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
