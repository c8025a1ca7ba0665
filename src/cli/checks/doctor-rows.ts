// What a doctor looks for: a row for each thing that can be wrong, the heaviest first, each with what to do.

import type { ErrorCode } from '../../base/errors.ts'
import type { ChannelState, GatewayState } from '../../management/metrics/gateway-state.ts'
import type { BookFacts } from '../../store/ledger/inspect-books.ts'
import type { Trouble, Weight } from './problem.ts'

export interface Seen {
  readonly dateMs: number
  readonly folder: string
  readonly hasData: boolean
  /** What the gateway says of itself; undefined: none runs, `silent`: one does and does not answer. */
  readonly state: GatewayState | 'silent' | undefined
  /** What it answers to whoever asks whether it is ready; undefined where nothing came. */
  readonly readyStatus: number | undefined
  /** What is in the database, or why it cannot be read. */
  readonly books: BookFacts | string | undefined
  readonly lastBackupMs: number | undefined
  readonly logBytes: number
  readonly metricsAnswer: boolean
  /** Of the folder and of the disk, as `weir check` finds them. */
  readonly folderTroubles: readonly Trouble[]
  /** Of the base URLs in the environment, as `weir check` finds them. */
  readonly addressTroubles: readonly Trouble[]
}

/** One thing that is wrong, where there may be several of the kind. */
export interface Symptom {
  readonly about?: string
  readonly says: string
  readonly remedy: string
}

export interface DoctorRow {
  readonly id: string
  readonly weight: Weight
  look(seen: Seen): readonly Symptom[]
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const BACKUP_DAYS_MAX = 7
const MEGABYTE = 1024 * 1024
const LOG_BYTES_MAX = 256 * MEGABYTE
const LATE_MS_MAX = 100
const AUDITS_MISSED_MAX = 10
/** A share of all calls beyond which errors of upstreams are more than an ordinary day. */
const FAILING_SHARE = 0.05

const stateOf = ({ state }: Seen): GatewayState | undefined => (typeof state === 'object' ? state : undefined)
const booksOf = ({ books }: Seen) => (typeof books === 'object' ? books.seen : undefined)

const when = (isSo: boolean, symptom: () => Symptom): readonly Symptom[] => (isSo ? [symptom()] : [])

/** Those that are ours to mend. */
const ourCodes = ['gateway_fault', 'settle_failed', 'storage_away', 'storage_full'] as const satisfies ErrorCode[]
const isOurs = (code: string): boolean => (ourCodes as readonly string[]).includes(code)

const inMinutes = (ms: number): string => `${Math.max(1, Math.ceil(ms / MINUTE_MS))} min`

function channels(seen: Seen, states: readonly ChannelState['state'][], tell: (one: ChannelState) => Symptom) {
  return (stateOf(seen)?.channels ?? []).filter(({ state }) => states.includes(state)).map(tell)
}

const failureOf = ({ lastFailure }: ChannelState): string =>
  lastFailure === null ? '' : ` The last failure (${lastFailure.verdict}) was ${inMinutes(lastFailure.agoMs)} ago.`

export const doctorRows: readonly DoctorRow[] = [
  {
    id: 'no_data',
    weight: 'problem',
    look: ({ hasData, folder }) =>
      when(!hasData, () => ({
        says: `There is no data of Weir in ${folder}.`,
        remedy: 'Start it once (weir serve), or say where its data is with WEIR_DATA.',
      })),
  },
  {
    id: 'database_unreadable',
    weight: 'problem',
    look: ({ books, folder }) =>
      when(typeof books === 'string', () => ({
        says: `The database in ${folder} cannot be read: ${String(books)}`,
        remedy: 'Bring back a backup: weir restore <backup folder>',
      })),
  },
  {
    id: 'schema_later',
    weight: 'problem',
    look: ({ books }) =>
      typeof books !== 'object' || books.schema <= books.schemaKnown
        ? []
        : [
            {
              says: `A later version of Weir wrote the data (schema ${books.schema}; this one: ${books.schemaKnown}).`,
              remedy: 'Use that version, or restore a backup made before it: weir restore <backup folder>',
            },
          ],
  },
  {
    id: 'not_running',
    weight: 'problem',
    look: ({ state, hasData, folder }) =>
      when(state === undefined && hasData, () => ({
        says: `No gateway runs on ${folder}.`,
        remedy: 'weir serve',
      })),
  },
  {
    id: 'not_answering',
    weight: 'problem',
    look: seen => {
      const { state, readyStatus } = seen
      const isDeaf = stateOf(seen) !== undefined && readyStatus === undefined
      return when(state === 'silent' || isDeaf, () => ({
        says: isDeaf ? `The gateway does not answer at ${stateOf(seen)!.url}.` : 'A gateway runs and does not answer.',
        remedy: 'Look at its log, then stop it and start it again: calls under way are settled by the next start.',
      }))
    },
  },
  {
    id: 'not_ready',
    weight: 'problem',
    look: seen => {
      const state = stateOf(seen)
      return when(state !== undefined && !state.ready && seen.readyStatus !== undefined, () => ({
        says: `The gateway is not ready: it is stopping, or its ledger waits (${Math.round(state!.ledgerAgeMs)} ms).`,
        remedy: 'Look at the disk and at the log. Whatever is in front of it should ask /health/ready.',
      }))
    },
  },
  {
    id: 'ledger_drift',
    weight: 'problem',
    look: seen =>
      when((stateOf(seen)?.ledger.drift ?? 0) > 0, () => ({
        says: `${stateOf(seen)!.ledger.drift} things in the books do not agree.`,
        remedy: 'weir audit',
      })),
  },
  {
    id: 'store_full',
    weight: 'problem',
    look: seen =>
      when(stateOf(seen)?.storeFull === true, () => ({
        says: 'There was no room for the last write: new calls are refused.',
        remedy: 'Make room on the disk, or raise WEIR_DATABASE_MB.',
      })),
  },
  {
    id: 'settles_owing',
    weight: 'problem',
    look: seen =>
      when((stateOf(seen)?.owing ?? 0) > 0, () => ({
        says: `${stateOf(seen)!.owing} calls are over and could not be written down yet. It is tried each second.`,
        remedy: 'Look at the disk. Do not delete anything of the data folder; the next start ends them, too.',
      })),
  },
  {
    id: 'folder',
    weight: 'problem',
    look: ({ folderTroubles }) => folderTroubles.filter(({ weight }) => weight === 'problem'),
  },
  {
    id: 'base_url',
    weight: 'problem',
    look: ({ addressTroubles }) => addressTroubles.filter(({ weight }) => weight === 'problem'),
  },
  {
    id: 'base_url_unsure',
    weight: 'note',
    look: ({ addressTroubles }) => addressTroubles.filter(({ weight, remedy }) => weight === 'note' && remedy !== ''),
  },
  {
    id: 'accounts_frozen',
    weight: 'problem',
    look: seen =>
      when((booksOf(seen)?.frozenAccounts ?? 0) > 0, () => ({
        says: `${booksOf(seen)!.frozenAccounts} accounts are frozen: their calls get 403.`,
        remedy: 'weir audit; then, account by account: weir accounts unfreeze <account>',
      })),
  },
  {
    id: 'holds_stuck',
    weight: 'problem',
    look: seen =>
      when((booksOf(seen)?.oldHolds ?? 0) > 0, () => ({
        says: `${booksOf(seen)!.oldHolds} calls of more than two hours ago still have money set aside.`,
        remedy: 'Start Weir again: each start settles what a crash left. Then: weir audit',
      })),
  },
  {
    id: 'our_errors',
    weight: 'problem',
    look: seen =>
      (booksOf(seen)?.errors ?? [])
        .filter(({ code }) => isOurs(code))
        .map(({ code, count }) => ({
          about: code,
          says: `${count} calls of the last hour ended so, which is the gateway's own fault.`,
          remedy: 'Look at its log (level error), and at the disk: weir records --outcome gateway_fault',
        })),
  },
  {
    id: 'overload',
    weight: 'problem',
    look: seen =>
      when((stateOf(seen)?.overloadLevel ?? 0) > 0, () => ({
        says: `The gateway is overloaded (level ${stateOf(seen)!.overloadLevel} of 3).`,
        remedy: 'See docs/overload.md; the log says what was short (overload): memory, the processor, or the disk.',
      })),
  },
  {
    id: 'credential_bad',
    weight: 'problem',
    look: seen =>
      channels(seen, ['credential_bad'], one => ({
        about: one.id,
        says: `Its provider refuses the credential.${failureOf(one)}`,
        remedy: `Renew the key; it is tried again in ${inMinutes(one.opensInMs)}. weir channels list`,
      })),
  },
  {
    id: 'quota_spent',
    weight: 'problem',
    look: seen =>
      channels(seen, ['quota_spent'], one => ({
        about: one.id,
        says: `Its provider says that nothing is left to spend.${failureOf(one)}`,
        remedy: `Pay the provider; it is tried again in ${inMinutes(one.opensInMs)}. weir channels list`,
      })),
  },
  {
    id: 'channel_closed',
    weight: 'problem',
    look: seen =>
      channels(seen, ['broken', 'rate_limited', 'told_limit'], one => ({
        about: one.id,
        says: `It takes no calls at the moment (${one.state}).${failureOf(one)}`,
        remedy: `It opens by itself in ${inMinutes(one.opensInMs)}. weir channels list`,
      })),
  },
  {
    id: 'price_unknown',
    weight: 'problem',
    look: seen =>
      (booksOf(seen)?.unpriced ?? []).map(model => ({
        about: model,
        says: 'It was asked for in the last day and refused: nobody knows its price.',
        remedy: `weir prices set ${model} '{"input":"…","output":"…"}'`,
      })),
  },
  {
    id: 'calls_failing',
    weight: 'problem',
    look: seen => {
      const { errors = [], calls = 0 } = booksOf(seen) ?? {}
      const failed = errors.filter(({ code }) => code.startsWith('upstream_') && code !== 'upstream_refused')
      const sum = failed.reduce((all, { count }) => all + count, 0)
      return when(sum > calls * FAILING_SHARE, () => ({
        says: `${sum} of ${calls} calls of the last hour failed at their upstreams (${toldCodes(failed)}).`,
        remedy: 'weir channels list; weir records --outcome upstream_failed',
      }))
    },
  },
  {
    id: 'audit_missed',
    weight: 'problem',
    look: seen => {
      const { ledger, auditEveryMs = 0, startedMs = 0 } = stateOf(seen) ?? {}
      const sinceMs = seen.dateMs - (ledger?.auditedMs ?? startedMs)
      return when(auditEveryMs > 0 && sinceMs > auditEveryMs * AUDITS_MISSED_MAX, () => ({
        says: `The auditor has not looked at the books for ${inMinutes(sinceMs)}.`,
        remedy: 'Look at the log (audit failed), and audit by hand: weir audit',
      }))
    },
  },
  {
    id: 'loop_late',
    weight: 'problem',
    look: seen =>
      when((stateOf(seen)?.lateMs ?? 0) > LATE_MS_MAX, () => ({
        says: `The gateway is ${Math.round(stateOf(seen)!.lateMs)} ms late with what it does: it needs more processor.`,
        remedy: 'Give it a faster core, or fewer calls (WEIR_CALLS_MAX). See docs/overload.md.',
      })),
  },
  {
    id: 'log_large',
    weight: 'problem',
    look: ({ logBytes }) =>
      when(logBytes > LOG_BYTES_MAX, () => ({
        says: `The database's log has grown to ${Math.round(logBytes / MEGABYTE)} MB: something reads for very long.`,
        remedy: 'Look for exports and backups that do not end, and other programs that have weir.db open.',
      })),
  },
  {
    id: 'backup_old',
    weight: 'problem',
    look: ({ lastBackupMs, hasData, dateMs }) => {
      const isOld = lastBackupMs === undefined || dateMs - lastBackupMs > BACKUP_DAYS_MAX * DAY_MS
      return when(hasData && isOld, () => ({
        says:
          lastBackupMs === undefined
            ? 'There was never a backup of this data.'
            : `The last backup was ${Math.floor((dateMs - lastBackupMs) / DAY_MS)} days ago.`,
        remedy: 'weir backup <folder>, each day',
      }))
    },
  },
  {
    id: 'metrics_deaf',
    weight: 'problem',
    look: seen =>
      when(typeof stateOf(seen)?.metricsUrl === 'string' && !seen.metricsAnswer, () => ({
        says: `Metrics do not answer at ${stateOf(seen)!.metricsUrl}.`,
        remedy: 'Look at METRICS_HOST and METRICS_PORT, and at what is between.',
      })),
  },
  {
    id: 'set_up_open',
    weight: 'problem',
    look: seen =>
      when(booksOf(seen)?.hasOwner === false, () => ({
        says: 'Nobody owns this gateway yet: it has not been set up.',
        remedy: 'weir setup',
      })),
  },
  {
    id: 'schema_earlier',
    weight: 'note',
    look: ({ books }) =>
      typeof books !== 'object' || books.schema >= books.schemaKnown
        ? []
        : [
            {
              says: `The data is of schema ${books.schema}; the next start brings it to ${books.schemaKnown}.`,
              remedy: 'weir backup <folder> before, with the version that runs now',
            },
          ],
  },
  {
    id: 'bodies_dropped',
    weight: 'note',
    look: seen =>
      when((stateOf(seen)?.bodiesDropped ?? 0) > 0, () => ({
        says: `${stateOf(seen)!.bodiesDropped} bodies that were to be kept were not, since the start.`,
        remedy: 'The disk was too slow for them, or memory was short. See docs/bodies.md.',
      })),
  },
  {
    id: 'errors',
    weight: 'note',
    look: seen => {
      const { errors = [], calls = 0 } = booksOf(seen) ?? {}
      const others = errors.filter(({ code }) => !isOurs(code))
      return when(others.length > 0, () => ({
        says: `Of ${calls} calls of the last hour some were refused: ${toldCodes(others)}.`,
        remedy: 'docs/errors.md says what each means. weir records --outcome refused',
      }))
    },
  },
]

const toldCodes = (errors: readonly { readonly code: string; readonly count: number }[]): string =>
  errors.map(({ code, count }) => `${code} ${count}`).join(', ')

/** The heaviest first. */
export function diagnose(seen: Seen): readonly Trouble[] {
  return doctorRows.flatMap(({ id, weight, look }) =>
    look(seen).map(({ about = id, says, remedy }) => ({ weight, about, says, remedy })),
  )
}
