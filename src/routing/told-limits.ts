// What an upstream's own headers say of its limits.

import type { ToldLimit } from './health.ts'

export function readToldLimits(_header: (name: string) => string | null): readonly ToldLimit[] | undefined {
  return undefined
}
