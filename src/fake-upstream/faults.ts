// Every fault that an upstream can commit by itself on a plain socket, as one table, for each dialect.

import { answer, fail } from './answers.ts'
import type { Dialect } from './dialect.ts'
import { bodyFaults } from './fault-rows/body.ts'
import { connectionFaults } from './fault-rows/connection.ts'
import { realFaultSettings } from './fault-rows/fault.ts'
import type { Fault, FaultKit, FaultRow, FaultSettings } from './fault-rows/fault.ts'
import { httpFaults } from './fault-rows/http.ts'
import { meaningFaults } from './fault-rows/meaning.ts'
import { sseFaults } from './fault-rows/sse.ts'
import { timingFaults } from './fault-rows/timing.ts'
import { chatWire } from './openai-chat/wire.ts'
import type { Script } from './script.ts'

export type { Fault, FaultSettings } from './fault-rows/fault.ts'
export { realFaultSettings } from './fault-rows/fault.ts'

const groups: readonly ((kit: FaultKit) => readonly FaultRow[])[] = [
  connectionFaults,
  timingFaults,
  httpFaults,
  bodyFaults,
  sseFaults,
  meaningFaults,
]

export function buildFaults(dialect: Dialect, settings: Partial<FaultSettings> = {}): readonly Fault[] {
  const kit: FaultKit = { dialect, settings: { ...realFaultSettings, ...settings } }
  return groups
    .flatMap(rows => rows(kit))
    .map(([id, name, asks, script]) => ({ id, name, dialect: dialect.name, asks, script }))
}

/** In real size. */
export const faults: readonly Fault[] = buildFaults(chatWire)

/** F34 as a sequence: a provider that cannot make up its mind. */
export function flapping(dialect: Dialect = chatWire): readonly Script[] {
  const good = answer('Hello', { dialect })
  return [fail(500, { dialect }), good, fail(503, { dialect }), fail(529, { dialect }), good]
}

export interface FaultElsewhere {
  readonly id: Fault['id']
  readonly name: string
  readonly reason: string
}

/** Faults that no script on an accepted plain socket can commit. */
export const faultsElsewhere: readonly FaultElsewhere[] = [
  { id: 'F1', name: 'refused', reason: 'needs a port that nobody listens on' },
  { id: 'F2', name: 'blackholed SYN', reason: 'needs a network that drops packets, or a full accept queue' },
  { id: 'F3', name: 'NXDOMAIN', reason: 'needs a name that does not resolve' },
  { id: 'F4', name: 'DNS timeout', reason: 'needs a name server that does not answer' },
  { id: 'F5', name: 'bad certificate', reason: 'needs a TLS listener' },
  { id: 'F6', name: 'TLS stall', reason: 'needs an https address; a plain socket that stays silent then does it' },
]
