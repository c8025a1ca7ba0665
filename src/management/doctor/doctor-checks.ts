// The checks of `weir doctor`, and of the gateway about itself: a row for each thing that can be wrong, the most serious
// first, each with a remedy.

import type { ErrorCode } from '../../base/errors.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time.ts'
import type { LiveProcess } from '../../store/engine/store-engine.ts'
import type { LedgerFacts } from '../../store/ledger/ledger-inspection.ts'
import type { ChannelState, GatewayState } from '../metrics/gateway-state.ts'
import type { CheckFinding, Severity } from './finding.ts'

/** Facts of the database that several gateways share. */
export interface SharedFacts {
  /** What `weir check` finds about the database and Redis. */
  readonly findings: readonly CheckFinding[]
  readonly isEmpty: boolean
  readonly members: readonly LiveProcess[]
  /** How far the clock of this machine is ahead of that of the database. */
  readonly aheadMs: number
}

export interface DoctorFacts {
  readonly dateMs: number
  readonly folder: string
  readonly hasData: boolean
  /** The state that the gateway reports; undefined: no gateway runs; `silent`: a gateway runs but does not answer. */
  readonly state: GatewayState | 'silent' | undefined
  /** The status of /health/ready; undefined if there was no response. */
  readonly readyStatus: number | undefined
  /** Facts from the database, or the reason why it cannot be read. */
  readonly books: LedgerFacts | string | undefined
  /** Set if the data is in PostgreSQL. */
  readonly shared: SharedFacts | undefined
  readonly lastBackupMs: number | undefined
  readonly logBytes: number
  readonly isMetricsReachable: boolean
  /** What `weir check` finds about the data folder and the disk. */
  readonly folderFindings: readonly CheckFinding[]
  /** What `weir check` finds about the base URLs in the environment. */
  readonly addressFindings: readonly CheckFinding[]
}

/** One thing that is wrong. A check may find several, for example one for each channel. */
export interface Symptom {
  readonly about?: string
  readonly says: string
  readonly remedy: string
}

export interface DoctorCheck {
  readonly id: string
  readonly weight: Severity
  find(seen: DoctorFacts): readonly Symptom[]
}

const BACKUP_DAYS_MAX = 7
const MEGABYTE = 1024 * 1024
const LOG_BYTES_MAX = 256 * MEGABYTE
const LATE_MS_MAX = 100
const AUDITS_MISSED_MAX = 10
/** A lease is renewed every 3 seconds, and lasts 15. */
const LEASE_AGE_MS_MAX = 9_000
const CLOCK_MS_MAX = 2_000
/** Above this share of all calls, upstream errors are worth reporting. */
const FAILING_SHARE = 0.05

const stateOf = ({ state }: DoctorFacts): GatewayState | undefined => (typeof state === 'object' ? state : undefined)
const booksOf = ({ books }: DoctorFacts) => (typeof books === 'object' ? books.details : undefined)

const when = (isTrue: boolean, symptom: () => Symptom): readonly Symptom[] => (isTrue ? [symptom()] : [])

/** Errors that the gateway itself causes. */
const gatewayCodes = ['gateway_fault', 'settle_failed', 'storage_away', 'storage_full'] as const satisfies ErrorCode[]
const isGatewayError = (code: string): boolean => (gatewayCodes as readonly string[]).includes(code)

const inSeconds = (aheadMs: number): string =>
  `${Math.abs(Math.round(aheadMs / 1_000))} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`

const inMinutes = (ms: number): string => `${Math.max(1, Math.ceil(ms / MINUTE_MS))} min`

function channelSymptoms(
  seen: DoctorFacts,
  states: readonly ChannelState['state'][],
  describe: (channel: ChannelState) => Symptom,
) {
  return (stateOf(seen)?.channels ?? []).filter(({ state }) => states.includes(state)).map(describe)
}

const failureOf = ({ lastFailure }: ChannelState): string =>
  lastFailure === null ? '' : ` The last failure (${lastFailure.verdict}) was ${inMinutes(lastFailure.agoMs)} ago.`

export const doctorChecks: readonly DoctorCheck[] = [
  {
    id: 'no_data',
    weight: 'problem',
    find: ({ hasData, folder, shared }) =>
      when(shared === undefined && !hasData, () => ({
        says: `There is no data of Weir in ${folder}.`,
        remedy: 'Start the gateway once (weir serve), or set WEIR_DATA to the folder that has its data.',
      })),
  },
  {
    id: 'shared_empty',
    weight: 'problem',
    find: ({ shared }) =>
      when(shared?.isEmpty === true, () => ({
        says: 'The database in WEIR_DATABASE_URL is empty.',
        remedy: 'Start a gateway (weir serve), or correct WEIR_DATABASE_URL.',
      })),
  },
  {
    id: 'shared',
    weight: 'problem',
    find: ({ shared }) => (shared?.findings ?? []).filter(({ weight }) => weight === 'problem'),
  },
  {
    id: 'shared_unsure',
    weight: 'note',
    find: ({ shared }) => (shared?.findings ?? []).filter(({ weight }) => weight === 'note'),
  },
  {
    id: 'lease_late',
    weight: 'problem',
    find: ({ shared }) =>
      (shared?.members ?? [])
        .filter(({ leaseAgeMs }) => leaseAgeMs > LEASE_AGE_MS_MAX)
        .map(({ slot, address, leaseAgeMs }) => ({
          about: `gateway ${slot}`,
          says: `${address} has not renewed its lease for ${Math.round(leaseAgeMs / 1_000)} s. Soon others end its calls.`,
          remedy:
            'If it was killed, nothing is to be done. Otherwise look at its log, and at its network to PostgreSQL.',
        })),
  },
  {
    id: 'clock_wrong',
    weight: 'problem',
    find: ({ shared }) =>
      when(Math.abs(shared?.aheadMs ?? 0) > CLOCK_MS_MAX, () => ({
        says: `The clock of this machine is ${inSeconds(shared!.aheadMs)} that of the PostgreSQL server.`,
        remedy: 'Let both machines set their clocks (NTP). A gateway whose clock is 25 s ahead takes no calls.',
      })),
  },
  {
    id: 'versions_differ',
    weight: 'note',
    find: ({ shared }) => {
      const versions = [...new Set((shared?.members ?? []).map(({ version }) => version))].toSorted()
      return when(versions.length > 1, () => ({
        says: `The gateways have different versions: ${versions.join(', ')}.`,
        remedy: 'That is right while a new version is deployed. Otherwise start the older ones again.',
      }))
    },
  },
  {
    id: 'database_unreadable',
    weight: 'problem',
    find: ({ books, folder }) =>
      when(typeof books === 'string', () => ({
        says: `The database in ${folder} cannot be read: ${String(books)}`,
        remedy: 'Restore a backup: weir restore <backup folder>',
      })),
  },
  {
    id: 'schema_later',
    weight: 'problem',
    find: ({ books }) =>
      typeof books !== 'object' || books.schema <= books.schemaKnown
        ? []
        : [
            {
              says: `A later version of Weir wrote the data (schema ${books.schema}; this version knows ${books.schemaKnown}).`,
              remedy: 'Use that version, or restore a backup made before it: weir restore <backup folder>',
            },
          ],
  },
  {
    id: 'not_running',
    weight: 'problem',
    find: ({ state, hasData, folder, shared }) =>
      when(state === undefined && hasData && (shared?.members.length ?? 0) === 0, () => ({
        says: `No gateway runs on ${folder}.`,
        remedy: 'weir serve',
      })),
  },
  {
    id: 'not_answering',
    weight: 'problem',
    find: seen => {
      const { state, readyStatus } = seen
      const isUnreachable = stateOf(seen) !== undefined && readyStatus === undefined
      return when(state === 'silent' || isUnreachable, () => ({
        says: isUnreachable
          ? `The gateway does not answer at ${stateOf(seen)!.url}.`
          : 'A gateway is running but does not answer.',
        remedy: 'Look at its log, then stop it and start it again: the next start settles calls that were running.',
      }))
    },
  },
  {
    id: 'not_ready',
    weight: 'problem',
    find: seen => {
      const state = stateOf(seen)
      return when(state !== undefined && !state.ready && seen.readyStatus !== undefined, () => ({
        says: `The gateway is not ready: it is stopping, or writes to its ledger are ${Math.round(state!.ledgerAgeMs)} ms late.`,
        remedy: 'Look at the disk and at the log. A load balancer in front of the gateway should check /health/ready.',
      }))
    },
  },
  {
    id: 'ledger_drift',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.ledger.drift ?? 0) > 0, () => ({
        says: `The ledger audit found ${stateOf(seen)!.ledger.drift} contradictions in the books.`,
        remedy: 'weir audit',
      })),
  },
  {
    id: 'store_full',
    weight: 'problem',
    find: seen =>
      when(stateOf(seen)?.storeFull === true, () => ({
        says: 'The last write failed because the disk or the database is full: new calls are refused.',
        remedy: 'Make room on the disk, or raise WEIR_DATABASE_MB.',
      })),
  },
  {
    id: 'unsettled_calls',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.unsettledCalls ?? 0) > 0, () => ({
        says: `${stateOf(seen)!.unsettledCalls} finished calls could not be written to the ledger yet. The gateway retries each second.`,
        remedy: 'Look at the disk. Do not delete anything in the data folder: the next start also settles these calls.',
      })),
  },
  {
    id: 'folder',
    weight: 'problem',
    find: ({ folderFindings }) => folderFindings.filter(({ weight }) => weight === 'problem'),
  },
  {
    id: 'base_url',
    weight: 'problem',
    find: ({ addressFindings }) => addressFindings.filter(({ weight }) => weight === 'problem'),
  },
  {
    id: 'base_url_unsure',
    weight: 'note',
    find: ({ addressFindings }) => addressFindings.filter(({ weight, remedy }) => weight === 'note' && remedy !== ''),
  },
  {
    id: 'accounts_frozen',
    weight: 'problem',
    find: seen =>
      when((booksOf(seen)?.frozenAccounts ?? 0) > 0, () => ({
        says: `${booksOf(seen)!.frozenAccounts} accounts are frozen: their calls get 403.`,
        remedy: 'weir audit; then, account by account: weir accounts unfreeze <account>',
      })),
  },
  {
    id: 'holds_stuck',
    weight: 'problem',
    find: seen =>
      when((booksOf(seen)?.oldHolds ?? 0) > 0, () => ({
        says: `${booksOf(seen)!.oldHolds} calls that began more than two hours ago still hold money.`,
        remedy: 'Start Weir again: each start settles the calls that a crash left open. Then: weir audit',
      })),
  },
  {
    id: 'our_errors',
    weight: 'problem',
    find: seen =>
      (booksOf(seen)?.errors ?? [])
        .filter(({ code }) => isGatewayError(code))
        .map(({ code, count }) => ({
          about: code,
          says: `${count} calls of the last hour ended with this error, which the gateway itself caused.`,
          remedy: 'Look at its log (level error), and at the disk: weir records --outcome gateway_fault',
        })),
  },
  {
    id: 'overload',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.overloadLevel ?? 0) > 0, () => ({
        says: `The gateway is overloaded (level ${stateOf(seen)!.overloadLevel} of 3).`,
        remedy:
          'See docs/how-it-works/overload.md. The log (overload) says what is short: memory, the processor, or the disk.',
      })),
  },
  {
    id: 'credential_bad',
    weight: 'problem',
    find: seen =>
      channelSymptoms(seen, ['credential_bad'], channel => ({
        about: channel.id,
        says: `The provider refuses its credential.${failureOf(channel)}`,
        remedy: `Replace the credential. The channel is tried again in ${inMinutes(channel.availableInMs)}. weir channels list`,
      })),
  },
  {
    id: 'quota_spent',
    weight: 'problem',
    find: seen =>
      channelSymptoms(seen, ['quota_spent'], channel => ({
        about: channel.id,
        says: `The provider says that its quota is used up.${failureOf(channel)}`,
        remedy: `Pay the provider. The channel is tried again in ${inMinutes(channel.availableInMs)}. weir channels list`,
      })),
  },
  {
    id: 'channel_blocked',
    weight: 'problem',
    find: seen =>
      channelSymptoms(seen, ['broken', 'rate_limited', 'upstream_limit'], channel => ({
        about: channel.id,
        says: `The channel takes no calls at the moment (${channel.state}).${failureOf(channel)}`,
        remedy: `The channel is tried again in ${inMinutes(channel.availableInMs)}. weir channels list`,
      })),
  },
  {
    id: 'price_unknown',
    weight: 'problem',
    find: seen =>
      (booksOf(seen)?.unpriced ?? []).map(model => ({
        about: model,
        says: 'Calls to this model were refused in the last day, because it has no price.',
        remedy: `weir prices set ${model} '{"input":"…","output":"…"}'`,
      })),
  },
  {
    id: 'calls_failing',
    weight: 'problem',
    find: seen => {
      const { errors = [], calls = 0 } = booksOf(seen) ?? {}
      const failed = errors.filter(({ code }) => code.startsWith('upstream_') && code !== 'upstream_refused')
      const sum = failed.reduce((all, { count }) => all + count, 0)
      return when(sum > calls * FAILING_SHARE, () => ({
        says: `${sum} of ${calls} calls of the last hour failed at their upstreams (${codeCounts(failed)}).`,
        remedy: 'weir channels list; weir records --outcome upstream_failed',
      }))
    },
  },
  {
    id: 'audit_missed',
    weight: 'problem',
    find: seen => {
      const { ledger, auditEveryMs = 0, startedMs = 0 } = stateOf(seen) ?? {}
      const sinceMs = seen.dateMs - (ledger?.auditedMs ?? startedMs)
      return when(auditEveryMs > 0 && sinceMs > auditEveryMs * AUDITS_MISSED_MAX, () => ({
        says: `The ledger has not been audited for ${inMinutes(sinceMs)}.`,
        remedy: 'Look at the log (audit failed), and run an audit: weir audit',
      }))
    },
  },
  {
    id: 'loop_late',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.lateMs ?? 0) > LATE_MS_MAX, () => ({
        says: `The event loop is ${Math.round(stateOf(seen)!.lateMs)} ms late: the gateway needs more processor time.`,
        remedy:
          'Give the gateway a faster core, or allow fewer calls (WEIR_CALLS_MAX). See docs/how-it-works/overload.md.',
      })),
  },
  {
    id: 'log_large',
    weight: 'problem',
    find: ({ logBytes }) =>
      when(logBytes > LOG_BYTES_MAX, () => ({
        says: `The database's write-ahead log has grown to ${Math.round(logBytes / MEGABYTE)} MB: a read runs for very long.`,
        remedy: 'Look for exports and backups that do not end, and for other programs that have the database open.',
      })),
  },
  {
    id: 'backup_old',
    weight: 'problem',
    find: ({ lastBackupMs, hasData, dateMs, shared }) => {
      const isOld = lastBackupMs === undefined || dateMs - lastBackupMs > BACKUP_DAYS_MAX * DAY_MS
      return when(hasData && isOld && shared === undefined, () => ({
        says:
          lastBackupMs === undefined
            ? 'This data has never been backed up.'
            : `The last backup was ${Math.floor((dateMs - lastBackupMs) / DAY_MS)} days ago.`,
        remedy: 'Run this each day: weir backup <folder>',
      }))
    },
  },
  {
    id: 'metrics_deaf',
    weight: 'problem',
    find: seen =>
      when(typeof stateOf(seen)?.metricsUrl === 'string' && !seen.isMetricsReachable, () => ({
        says: `Metrics do not answer at ${stateOf(seen)!.metricsUrl}.`,
        remedy: 'Check METRICS_HOST and METRICS_PORT, and any firewall in between.',
      })),
  },
  {
    id: 'set_up_open',
    weight: 'problem',
    find: seen =>
      when(booksOf(seen)?.hasOwner === false, () => ({
        says: 'This gateway has no owner yet: it has not been set up.',
        remedy: 'weir setup',
      })),
  },
  {
    id: 'schema_earlier',
    weight: 'note',
    find: ({ books }) =>
      typeof books !== 'object' || books.schema >= books.schemaKnown
        ? []
        : [
            {
              says: `The data has schema ${books.schema}; the next start migrates it to ${books.schemaKnown}.`,
              remedy: 'Before that, make a backup with the version that runs now: weir backup <folder>',
            },
          ],
  },
  {
    id: 'bodies_dropped',
    weight: 'note',
    find: seen =>
      when((stateOf(seen)?.bodiesDropped ?? 0) > 0, () => ({
        says: `${stateOf(seen)!.bodiesDropped} request or response bodies could not be stored since the start.`,
        remedy: 'The disk was too slow, or memory was short. See docs/guides/stored-bodies.md.',
      })),
  },
  {
    id: 'errors',
    weight: 'note',
    find: seen => {
      const { errors = [], calls = 0 } = booksOf(seen) ?? {}
      const others = errors.filter(({ code }) => !isGatewayError(code))
      return when(others.length > 0, () => ({
        says: `Some of ${calls} calls of the last hour were refused: ${codeCounts(others)}.`,
        remedy: 'docs/reference/errors.md explains each error. weir records --outcome refused',
      }))
    },
  },
]

const codeCounts = (errors: readonly { readonly code: string; readonly count: number }[]): string =>
  errors.map(({ code, count }) => `${code} ${count}`).join(', ')

export interface DoctorFinding extends CheckFinding {
  /** The id of the check. */
  readonly check: string
}

/** The most serious finding comes first. */
export function diagnose(seen: DoctorFacts): readonly DoctorFinding[] {
  return doctorChecks.flatMap(({ id, weight, find }) =>
    find(seen).map(({ about = id, says, remedy }) => ({ check: id, weight, about, says, remedy })),
  )
}
