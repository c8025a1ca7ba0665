// What all resources are made with.

import type { Rolling } from '../store/statistics/rolling.ts'
import type { OperatorParts } from './command.ts'

export interface ManagementParts extends OperatorParts {
  readonly rolling: Pick<Rolling, 'ready' | 'rolled'>
}
