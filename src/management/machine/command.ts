// The type of a machine command. Its input comes from the command line as JSON.

import type { AuditActor } from '../../store/audit-log/audited-operations.ts'
import { actorSubject } from '../actor.ts'

export type MachineInput = Readonly<Record<string, unknown>>
export type MachineAnswer = Record<string, unknown>
export type MachineCommand = (input: MachineInput) => Promise<MachineAnswer>
export type MachineCommands = Readonly<Record<string, MachineCommand>>

export const byOperator: AuditActor = { actor: actorSubject(0) }
