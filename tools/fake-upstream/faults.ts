// One table of every fault that an upstream can commit: by a script on a socket, in each dialect, or by a whole address.

import { answer, fail } from './answers.ts'
import type { Dialect } from './dialect.ts'
import { bodyFaults } from './fault-rows/body.ts'
import { connectionFaults } from './fault-rows/connection.ts'
import type { AddressFault, Fault, FaultKit, FaultRow, FaultSettings, ScriptedFault } from './fault-rows/fault.ts'
import { realFaultSettings } from './fault-rows/fault.ts'
import { httpFaults } from './fault-rows/http.ts'
import { faultKinds } from './fault-rows/kinds.ts'
import { meaningFaults } from './fault-rows/meaning.ts'
import { placeRows } from './fault-rows/place.ts'
import { sseFaults } from './fault-rows/sse.ts'
import { timingFaults } from './fault-rows/timing.ts'
import { chatWire } from './openai-chat/wire.ts'
import type { Script } from './script.ts'

export type { AddressFault as PlacedFault, Fault, FaultSettings, ScriptedFault } from './fault-rows/fault.ts'
export { realFaultSettings } from './fault-rows/fault.ts'

const FAULT_GROUPS: readonly ((kit: FaultKit) => readonly FaultRow[])[] = [
  connectionFaults,
  timingFaults,
  httpFaults,
  bodyFaults,
  sseFaults,
  meaningFaults,
]

/** The faults that a script commits. */
export function buildFaults(dialect: Dialect, settings: Partial<FaultSettings> = {}): readonly ScriptedFault[] {
  const kit: FaultKit = { dialect, settings: { ...realFaultSettings, ...settings } }
  return FAULT_GROUPS.flatMap(rows => rows(kit)).map(([id, name, asks, script]) => ({
    id,
    name,
    does: faultKinds[id].does,
    asks,
    by: 'script',
    dialect: dialect.name,
    script,
  }))
}

export const addressFaults: readonly AddressFault[] = placeRows.map(([id, name, open]) => ({
  id,
  name,
  does: faultKinds[id].does,
  asks: 'either',
  by: 'place',
  open,
}))

/** All faults, as an upstream of this dialect commits them. */
export const faultsIn = (dialect: Dialect, settings: Partial<FaultSettings> = {}): readonly Fault[] => [
  ...addressFaults,
  ...buildFaults(dialect, settings),
]

/** The scripted faults of the chat dialect, in real size. */
export const faults: readonly ScriptedFault[] = buildFaults(chatWire)

/** F34 as a sequence: a provider that alternates between errors and good answers. */
export function buildFlappingScripts(dialect: Dialect = chatWire): readonly Script[] {
  const good = answer('Hello', { dialect })
  return [fail(500, { dialect }), good, fail(503, { dialect }), fail(529, { dialect }), good]
}
