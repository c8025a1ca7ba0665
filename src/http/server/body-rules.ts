// What a request body may be, by who sends it. docs/request-bodies.md is written from this table, and what reads
// bodies goes by it.

import { bounds } from '../../base/bounds.ts'
import type { ScanBounds } from '../../base/text/json-bytes.ts'
import type { BodyClass } from './body-budget.ts'

export interface BodyRule {
  readonly bytesMax: number
  readonly msMax: number
  /** How often it may be read, however little each read brings. */
  readonly readsMin: number
  /** Whether it may be compressed. */
  readonly decodes: boolean
  /** Of its JSON, looked at before it is parsed. */
  readonly json: ScanBounds
}

export const bodyRules: Readonly<Record<BodyClass, BodyRule>> = {
  stranger: {
    bytesMax: bounds.strangerBodyBytesMax,
    msMax: bounds.strangerBodyMsMax,
    readsMin: bounds.strangerBodyReadsMin,
    decodes: false,
    json: { depthMax: bounds.strangerJsonDepthMax, valuesMax: bounds.strangerJsonValuesMax },
  },
  person: {
    bytesMax: bounds.managementBodyBytesMax,
    msMax: bounds.bodyMsMax,
    readsMin: bounds.personBodyReadsMin,
    decodes: false,
    json: { depthMax: bounds.managementJsonDepthMax, valuesMax: bounds.managementJsonValuesMax },
  },
  caller: {
    bytesMax: bounds.bodyBytesMax,
    msMax: bounds.bodyMsMax,
    readsMin: bounds.callerBodyReadsMin,
    decodes: true,
    json: {
      depthMax: bounds.jsonDepthMax,
      valuesMax: bounds.jsonValuesMax,
      containersMax: bounds.jsonContainersMax,
    },
  },
}
