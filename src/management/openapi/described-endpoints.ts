// The management endpoints without anything behind them: to be described and not to be asked.

import type { ManagementParts } from '../management-parts.ts'
import { buildWebEndpoints } from '../resources/table.ts'

/** Whatever is asked of it, it gives itself. */
const anything: object = new Proxy(() => anything, { get: () => anything, apply: () => anything })

export const describedEndpoints = buildWebEndpoints(anything as ManagementParts)
