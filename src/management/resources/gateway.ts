// The endpoint for the gateway itself: its version, its database, the processes that share it, and what is wrong.

import * as z from 'zod'
import { refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import { doctorChecks, examine } from '../doctor/doctor-checks.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { CollectedFacts } from '../services/gateway-facts.ts'
import { buildGatewayFacts } from '../services/gateway-facts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, time } from './endpoint.ts'
import { Hint } from './hint-schema.ts'
import { books, booksOf } from './ledger.ts'

const Process = z
  .object({
    slot: z.number().nullable().meta({ description: 'Its number among the processes; null: it is the only one' }),
    address: z.string().meta({ description: 'The machine, and where the process listens' }),
    version: z.string(),
    leaseAgeMs: z.number().nullable().meta({ description: 'How long ago it renewed its lease; null: it needs none' }),
    hasRunOut: z.boolean().meta({ description: 'True: others may take it for dead' }),
    isThis: z.boolean().meta({ description: 'The process that answered this request' }),
  })
  .meta({ id: 'GatewayProcess' })

const Finding = z
  .object({
    check: z.enum(doctorChecks.map(({ id }) => id) as [string, ...string[]]),
    severity: z.enum(['problem', 'note']),
    about: z.string().meta({ description: 'The channel, model or error code; otherwise the check again' }),
    text: z.string(),
    textHint: Hint,
    remedy: z.string().nullable().meta({ description: 'What to do, such as a command on the machine' }),
    remedyHint: Hint.nullable(),
  })
  .meta({ id: 'GatewayFinding' })

const Gateway = z
  .object({
    version: z.string(),
    consoleBuild: z.string().nullable(),
    started: time.meta({ description: 'When this process started; the fields up to `database` are its own' }),
    ready: z.boolean(),
    overload: z.number().int().min(0).max(3).meta({ description: '0: no call is refused for lack of capacity' }),
    loopLateMs: z.number().meta({ description: 'How late timers run; a busy processor makes it grow' }),
    activeCalls: z.number(),
    unsettledCalls: z.number().meta({ description: 'Finished calls whose cost is not written yet' }),
    ledgerLateMs: z.number().meta({ description: 'How long the oldest write to the ledger has waited' }),
    storageFull: z.boolean(),
    bodiesDropped: z.number().meta({ description: 'Bodies that could not be stored since the start' }),
    database: z.object({
      kind: z.enum(['sqlite', 'postgres']),
      lastBackup: time
        .nullable()
        .meta({ description: 'The last `weir backup`; null: none, or PostgreSQL, which has backups of its own' }),
      logBytes: z.number().nullable().meta({ description: 'The write-ahead log of SQLite; null: PostgreSQL' }),
      clockAheadMs: z
        .number()
        .nullable()
        .meta({ description: 'How far the clock of the gateway is ahead of that of PostgreSQL; null: SQLite' }),
    }),
    processes: z.array(Process),
    books,
    audited: time.nullable(),
    well: z.boolean().meta({ description: 'True: none of the findings is a problem' }),
    findings: z.array(Finding).meta({
      description:
        'What `weir doctor` would find, the most serious first, without its checks of the network, the disk and the ' +
        'files, which only that command does',
    }),
  })
  .meta({ id: 'Gateway' })

export function gatewayEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const collect = buildGatewayFacts(parts)
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/gateway',
      who: { site: 'support' },
      summary:
        'Show the state of the gateway: version, database, processes, and what is wrong and what to do about it.',
      answer: Gateway,
      async run() {
        const facts = await collect()
        if (facts === undefined) throw refusal('state_unfit', hintOf('gateway_not_running'))
        return { body: shown(parts, facts) }
      },
    }),
  ]
}

function shown(parts: ManagementParts, facts: CollectedFacts): z.input<typeof Gateway> {
  const { state, shared, lastBackupMs, logBytes } = facts
  const isShared = shared !== undefined
  const findings = examine(facts)
  return {
    version: state.version,
    consoleBuild: parts.consoleBuild,
    started: timeText(state.startedMs),
    ready: state.ready,
    overload: state.overloadLevel,
    loopLateMs: Math.round(state.lateMs),
    activeCalls: state.callsUnderWay,
    unsettledCalls: state.unsettledCalls,
    ledgerLateMs: Math.round(state.ledgerAgeMs),
    storageFull: state.storeFull,
    bodiesDropped: state.bodiesDropped,
    database: {
      kind: parts.storage.kind,
      lastBackup: timeOrNull(lastBackupMs ?? null),
      logBytes: isShared ? null : logBytes,
      clockAheadMs: isShared ? Math.round(shared.aheadMs) : null,
    },
    processes: processesOf(parts, facts),
    books: booksOf(parts.auditor),
    audited: timeOrNull(parts.auditor.state.auditedMs),
    well: findings.every(({ weight }) => weight !== 'problem'),
    findings: findings.map(({ check, weight, about, says, remedy }) => ({
      check,
      severity: weight,
      about,
      text: says.text,
      textHint: says.data,
      remedy: remedy?.text ?? null,
      remedyHint: remedy?.data ?? null,
    })),
  }
}

function processesOf(
  { storage: { slot: ownSlot } }: ManagementParts,
  { processes, state: { url, version } }: CollectedFacts,
): z.input<typeof Process>[] {
  if (processes === undefined)
    return [{ slot: null, address: url, version, leaseAgeMs: null, hasRunOut: false, isThis: true }]
  return processes.members.map(({ slot, address, version: own, leaseAgeMs, hasRunOut }) => ({
    slot,
    address,
    version: own,
    leaseAgeMs: Math.round(leaseAgeMs),
    hasRunOut,
    isThis: slot === ownSlot,
  }))
}
