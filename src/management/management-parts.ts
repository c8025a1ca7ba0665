// What all resources are made with.

import type { Auditor } from '../billing/auditor.ts'
import type { OperatorParts } from './command.ts'

export interface ManagementParts extends OperatorParts {
  readonly auditor: Pick<Auditor, 'state' | 'findings'>
}
