// What all resources are made with.

import type { Desk } from '../store/desk.ts'
import type { OperatorParts } from './command.ts'

export interface ManagementParts extends OperatorParts {
  readonly desk: Pick<Desk, 'ask'>
}
