// The parts that all resources use.

import type { Log } from '../base/log.ts'
import type { Seal } from '../base/secrets/seal.ts'
import type { Auditor } from '../billing/auditor.ts'
import type { StatisticsWorker } from '../store/statistics/statistics-worker.ts'
import type { OperatorParts } from './command.ts'
import type { SiteSettings } from './services/site-settings.ts'

export interface ManagementParts extends OperatorParts {
  readonly site: Pick<SiteSettings, 'current' | 'renew'>
  readonly seal: Pick<Seal, 'seal' | 'open'>
  readonly log: Log
  readonly secureCookies: boolean
  nowMs(): number
  readonly statisticsAggregator: Pick<StatisticsWorker, 'ready' | 'progress'>
  readonly auditor: Pick<Auditor, 'state' | 'findings'>
}
