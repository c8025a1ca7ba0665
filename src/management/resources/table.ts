// Every management endpoint, in one table.

import type { ManagementParts } from '../management-parts.ts'
import { auditLogEndpoints } from './audit-log.ts'
import { channelEndpoints } from './channels.ts'
import { meEndpoints } from './me.ts'
import { modelEndpoints } from './models.ts'
import { providerEndpoints } from './providers.ts'
import type { WebEndpoint } from './endpoint.ts'
import { tierEndpoints } from './tiers.ts'

export const buildWebEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  ...meEndpoints,
  ...tierEndpoints(parts),
  ...auditLogEndpoints(parts),
  ...providerEndpoints(parts),
  ...channelEndpoints(parts),
  ...modelEndpoints(parts),
]
