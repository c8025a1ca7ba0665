// The limits of request bodies, by class of sender. docs/reference/request-bodies.md is generated from this table.

import { bounds } from '../../base/bounds.ts'
import type { ScanBounds } from '../../base/text/json-bytes.ts'
import type { BodyClass } from './body-budget.ts'

export interface BodyRule {
  readonly bytesMax: number
  readonly msMax: number
  /** The number of reads that are always allowed, however small they are. */
  readonly readsMin: number
  /** Whether the body may be compressed. */
  readonly decodes: boolean
  /** Limits of its JSON, which are checked before parsing. */
  readonly json: ScanBounds
}

export const bodyRules: Readonly<Record<BodyClass, BodyRule>> = {
  anonymous: {
    bytesMax: bounds.anonymousBodyBytesMax,
    msMax: bounds.anonymousBodyMsMax,
    readsMin: bounds.anonymousBodyReadsMin,
    decodes: false,
    json: { depthMax: bounds.anonymousJsonDepthMax, valuesMax: bounds.anonymousJsonValuesMax },
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
