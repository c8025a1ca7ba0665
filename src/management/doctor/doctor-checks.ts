// The checks of `weir doctor`, and of the gateway about itself: a row for each thing that can be wrong, the most serious
// first, each with a remedy.

import type { ErrorCode } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { forOperator, hintOf } from '../../base/hints.ts'
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
  readonly says: Hint
  /** Undefined if there is nothing to do. */
  readonly remedy?: Hint
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

const inMinutes = (ms: number): number => Math.max(1, Math.ceil(ms / MINUTE_MS))

const command = (text: string): Hint => hintOf('do_command', { command: text })

/** What `weir check` finds, which only the command line shows. */
const symptomsOf = (findings: readonly CheckFinding[], weight: Severity): readonly Symptom[] =>
  findings
    .filter(found => found.weight === weight)
    .map(({ about, says, remedy }) => ({
      about,
      says: forOperator(says),
      ...(remedy !== '' && { remedy: forOperator(remedy) }),
    }))

function channelSymptoms(
  seen: DoctorFacts,
  states: readonly ChannelState['state'][],
  describe: (channel: ChannelState) => Symptom,
) {
  return (stateOf(seen)?.channels ?? []).filter(({ state }) => states.includes(state)).map(describe)
}

const failureOf = ({ lastFailure }: ChannelState): Hint | string =>
  lastFailure === null
    ? ''
    : hintOf('last_failure', { verdict: lastFailure.verdict, minutes: inMinutes(lastFailure.agoMs) })

export const doctorChecks: readonly DoctorCheck[] = [
  {
    id: 'no_data',
    weight: 'problem',
    find: ({ hasData, folder, shared }) =>
      when(shared === undefined && !hasData, () => ({
        says: hintOf('no_data', { folder }),
        remedy: hintOf('do_no_data'),
      })),
  },
  {
    id: 'shared_empty',
    weight: 'problem',
    find: ({ shared }) =>
      when(shared?.isEmpty === true, () => ({
        says: hintOf('shared_empty'),
        remedy: hintOf('do_shared_empty'),
      })),
  },
  {
    id: 'shared',
    weight: 'problem',
    find: ({ shared }) => symptomsOf(shared?.findings ?? [], 'problem'),
  },
  {
    id: 'shared_unsure',
    weight: 'note',
    find: ({ shared }) => symptomsOf(shared?.findings ?? [], 'note'),
  },
  {
    id: 'lease_late',
    weight: 'problem',
    find: ({ shared }) =>
      (shared?.members ?? [])
        .filter(({ leaseAgeMs }) => leaseAgeMs > LEASE_AGE_MS_MAX)
        .map(({ slot, address, leaseAgeMs }) => ({
          about: `gateway ${slot}`,
          says: hintOf('lease_late', { address, seconds: Math.round(leaseAgeMs / 1_000) }),
          remedy: hintOf('do_lease_late'),
        })),
  },
  {
    id: 'clock_wrong',
    weight: 'problem',
    find: ({ shared }) =>
      when(Math.abs(shared?.aheadMs ?? 0) > CLOCK_MS_MAX, () => ({
        says: hintOf(shared!.aheadMs > 0 ? 'clock_ahead' : 'clock_behind', {
          seconds: Math.abs(Math.round(shared!.aheadMs / 1_000)),
        }),
        remedy: hintOf('do_clock_wrong'),
      })),
  },
  {
    id: 'versions_differ',
    weight: 'note',
    find: ({ shared }) => {
      const versions = [...new Set((shared?.members ?? []).map(({ version }) => version))].toSorted()
      return when(versions.length > 1, () => ({
        says: hintOf('versions_differ', { versions: versions.join(', ') }),
        remedy: hintOf('do_versions_differ'),
      }))
    },
  },
  {
    id: 'database_unreadable',
    weight: 'problem',
    find: ({ books, folder }) =>
      when(typeof books === 'string', () => ({
        says: hintOf('database_unreadable', { folder, problem: String(books) }),
        remedy: hintOf('do_database_unreadable'),
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
              says: hintOf('schema_later', { found: books.schema, known: books.schemaKnown }),
              remedy: hintOf('do_schema_later'),
            },
          ],
  },
  {
    id: 'not_running',
    weight: 'problem',
    find: ({ state, hasData, folder, shared }) =>
      when(state === undefined && hasData && (shared?.members.length ?? 0) === 0, () => ({
        says: hintOf('not_running', { folder }),
        remedy: command('weir serve'),
      })),
  },
  {
    id: 'not_answering',
    weight: 'problem',
    find: seen => {
      const { state, readyStatus } = seen
      const isUnreachable = stateOf(seen) !== undefined && readyStatus === undefined
      return when(state === 'silent' || isUnreachable, () => ({
        says: isUnreachable ? hintOf('not_answering', { url: stateOf(seen)!.url }) : hintOf('not_answering_at_all'),
        remedy: hintOf('do_not_answering'),
      }))
    },
  },
  {
    id: 'not_ready',
    weight: 'problem',
    find: seen => {
      const state = stateOf(seen)
      return when(state !== undefined && !state.ready && seen.readyStatus !== undefined, () => ({
        says: hintOf('not_ready', { late: Math.round(state!.ledgerAgeMs) }),
        remedy: hintOf('do_not_ready'),
      }))
    },
  },
  {
    id: 'ledger_drift',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.ledger.drift ?? 0) > 0, () => ({
        says: hintOf('ledger_drift', { count: stateOf(seen)!.ledger.drift }),
        remedy: command('weir audit'),
      })),
  },
  {
    id: 'store_full',
    weight: 'problem',
    find: seen =>
      when(stateOf(seen)?.storeFull === true, () => ({
        says: hintOf('store_full'),
        remedy: hintOf('do_store_full'),
      })),
  },
  {
    id: 'unsettled_calls',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.unsettledCalls ?? 0) > 0, () => ({
        says: hintOf('unsettled_calls', { count: stateOf(seen)!.unsettledCalls }),
        remedy: hintOf('do_unsettled_calls'),
      })),
  },
  {
    id: 'folder',
    weight: 'problem',
    find: ({ folderFindings }) => symptomsOf(folderFindings, 'problem'),
  },
  {
    id: 'base_url',
    weight: 'problem',
    find: ({ addressFindings }) => symptomsOf(addressFindings, 'problem'),
  },
  {
    id: 'base_url_unsure',
    weight: 'note',
    find: ({ addressFindings }) => symptomsOf(addressFindings, 'note').filter(({ remedy }) => remedy !== undefined),
  },
  {
    id: 'accounts_frozen',
    weight: 'problem',
    find: seen =>
      when((booksOf(seen)?.frozenAccounts ?? 0) > 0, () => ({
        says: hintOf('accounts_frozen', { count: booksOf(seen)!.frozenAccounts }),
        remedy: hintOf('do_accounts_frozen'),
      })),
  },
  {
    id: 'holds_stuck',
    weight: 'problem',
    find: seen =>
      when((booksOf(seen)?.oldHolds ?? 0) > 0, () => ({
        says: hintOf('holds_stuck', { count: booksOf(seen)!.oldHolds }),
        remedy: hintOf('do_holds_stuck'),
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
          says: hintOf('our_errors', { count }),
          remedy: hintOf('do_our_errors'),
        })),
  },
  {
    id: 'overload',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.overloadLevel ?? 0) > 0, () => ({
        says: hintOf('overload', { level: stateOf(seen)!.overloadLevel }),
        remedy: hintOf('do_overload'),
      })),
  },
  {
    id: 'credential_bad',
    weight: 'problem',
    find: seen =>
      channelSymptoms(seen, ['credential_bad'], channel => ({
        about: channel.id,
        says: hintOf('credential_bad', { failure: failureOf(channel) }),
        remedy: hintOf('do_credential_bad', { minutes: inMinutes(channel.availableInMs) }),
      })),
  },
  {
    id: 'quota_spent',
    weight: 'problem',
    find: seen =>
      channelSymptoms(seen, ['quota_spent'], channel => ({
        about: channel.id,
        says: hintOf('quota_spent', { failure: failureOf(channel) }),
        remedy: hintOf('do_quota_spent', { minutes: inMinutes(channel.availableInMs) }),
      })),
  },
  {
    id: 'channel_blocked',
    weight: 'problem',
    find: seen =>
      channelSymptoms(seen, ['broken', 'rate_limited', 'upstream_limit'], channel => ({
        about: channel.id,
        says: hintOf('channel_blocked', { state: channel.state, failure: failureOf(channel) }),
        remedy: hintOf('do_channel_blocked', { minutes: inMinutes(channel.availableInMs) }),
      })),
  },
  {
    id: 'price_unknown',
    weight: 'problem',
    find: seen =>
      (booksOf(seen)?.unpriced ?? []).map(model => ({
        about: model,
        says: hintOf('price_unknown'),
        remedy: command(`weir prices set ${model} '{"input":"…","output":"…"}'`),
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
        says: hintOf('calls_failing', { count: sum, calls, errors: codeCounts(failed) }),
        remedy: command('weir channels list; weir records --outcome upstream_failed'),
      }))
    },
  },
  {
    id: 'audit_missed',
    weight: 'problem',
    find: seen => {
      const { ledger, auditEveryMs = 0, startedMs = 0 } = stateOf(seen) ?? {}
      const sinceMs = seen.dateMs - (ledger?.auditedMs ?? startedMs)
      const minutes = inMinutes(sinceMs)
      return when(auditEveryMs > 0 && sinceMs > auditEveryMs * AUDITS_MISSED_MAX, () => ({
        says: hintOf('audit_missed', { hours: Math.floor(minutes / 60), minutes: minutes % 60 }),
        remedy: hintOf('do_audit_missed'),
      }))
    },
  },
  {
    id: 'loop_late',
    weight: 'problem',
    find: seen =>
      when((stateOf(seen)?.lateMs ?? 0) > LATE_MS_MAX, () => ({
        says: hintOf('loop_late', { late: Math.round(stateOf(seen)!.lateMs) }),
        remedy: hintOf('do_loop_late'),
      })),
  },
  {
    id: 'log_large',
    weight: 'problem',
    find: ({ logBytes }) =>
      when(logBytes > LOG_BYTES_MAX, () => ({
        says: hintOf('log_large', { megabytes: Math.round(logBytes / MEGABYTE) }),
        remedy: hintOf('do_log_large'),
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
            ? hintOf('backup_never')
            : hintOf('backup_old', { days: Math.floor((dateMs - lastBackupMs) / DAY_MS) }),
        remedy: hintOf('do_backup_old'),
      }))
    },
  },
  {
    id: 'metrics_deaf',
    weight: 'problem',
    find: seen =>
      when(typeof stateOf(seen)?.metricsUrl === 'string' && !seen.isMetricsReachable, () => ({
        says: hintOf('metrics_deaf', { url: String(stateOf(seen)!.metricsUrl) }),
        remedy: hintOf('do_metrics_deaf'),
      })),
  },
  {
    id: 'set_up_open',
    weight: 'problem',
    find: seen =>
      when(booksOf(seen)?.hasOwner === false, () => ({
        says: hintOf('set_up_open'),
        remedy: command('weir setup'),
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
              says: hintOf('schema_earlier', { found: books.schema, known: books.schemaKnown }),
              remedy: hintOf('do_schema_earlier'),
            },
          ],
  },
  {
    id: 'bodies_dropped',
    weight: 'note',
    find: seen =>
      when((stateOf(seen)?.bodiesDropped ?? 0) > 0, () => ({
        says: hintOf('bodies_dropped', { count: stateOf(seen)!.bodiesDropped }),
        remedy: hintOf('do_bodies_dropped'),
      })),
  },
  {
    id: 'errors',
    weight: 'note',
    find: seen => {
      const { errors = [], calls = 0 } = booksOf(seen) ?? {}
      const others = errors.filter(({ code }) => !isGatewayError(code))
      return when(others.length > 0, () => ({
        says: hintOf('refused_calls', { calls, errors: codeCounts(others) }),
        remedy: hintOf('do_refused_calls'),
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

interface FoundSymptom extends Symptom {
  readonly check: string
  readonly weight: Severity
  readonly about: string
}

/** The most serious symptom comes first. */
export const examine = (seen: DoctorFacts): readonly FoundSymptom[] =>
  doctorChecks.flatMap(({ id, weight, find }) =>
    find(seen).map(symptom => ({ about: id, ...symptom, check: id, weight })),
  )

/** The same as texts, for the command line. */
export const diagnose = (seen: DoctorFacts): readonly DoctorFinding[] =>
  examine(seen).map(({ says, remedy, ...found }) => ({ ...found, says: says.text, remedy: remedy?.text ?? '' }))
