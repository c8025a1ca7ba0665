// Estimates how long a large body occupies the thread that serves calls, after another thread has parsed it.

import type { ScanCounts } from '../../base/text/json-bytes.ts'

/** The approximate time to rebuild and check one of each, in microseconds. */
const COST_US = { names: 3, containers: 0.5, values: 0.1, bytes: 0.0005 }

/** In milliseconds. */
export function estimateServingMs({ names, containers, values }: Readonly<ScanCounts>, bytes: number): number {
  const costUs =
    names * COST_US.names + containers * COST_US.containers + values * COST_US.values + bytes * COST_US.bytes
  return costUs / 1_000
}
