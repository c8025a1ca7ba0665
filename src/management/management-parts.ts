// The parts that all resources use.

import type { Log } from '../base/log.ts'
import type { Seal } from '../base/secrets/seal.ts'
import type { Auditor } from '../billing/auditor.ts'
import type { Rolling } from '../store/statistics/rolling.ts'
import type { OperatorParts } from './command.ts'
import type { SiteBook } from './services/site-settings.ts'

export interface ManagementParts extends OperatorParts {
  readonly site: Pick<SiteBook, 'current' | 'renew'>
  readonly seal: Pick<Seal, 'close' | 'open'>
  readonly log: Log
  readonly secureCookies: boolean
  nowMs(): number
  readonly rolling: Pick<Rolling, 'ready' | 'rolled'>
  readonly auditor: Pick<Auditor, 'state' | 'findings'>
}
