// The management endpoints with dummy parts. They can be described but not run.

import type { ManagementParts } from '../management-parts.ts'
import { buildWebEndpoints } from '../resources/table.ts'

/** Every property and every call of this object returns the object itself. */
const anything: object = new Proxy(() => anything, { get: () => anything, apply: () => anything })

export const describedEndpoints = buildWebEndpoints(anything as ManagementParts)
