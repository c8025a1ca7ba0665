// What a call used, and what it costs.

import type { Bill } from '../../billing/price.ts'
import type { ChargedUsage } from '../../billing/who-pays.ts'

export interface Cost extends ChargedUsage, Bill {}
