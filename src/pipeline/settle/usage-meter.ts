// Measures an answer while it passes. There is one meter per attempt, because failed attempts are not billed.

import type { UpstreamError } from '../../base/errors.ts'
import type { Unit, Usage, UsageReport } from '../../base/money/usage.ts'
import { usageShrinks } from '../../base/money/usage.ts'
import type { BelievedUsage } from '../../billing/believable-usage.ts'
import { isExcessive } from '../../billing/believable-usage.ts'
import type { AnswerReading, FrameReading, ItemSizes } from '../../protocols/neutral/call.ts'
import { addItems, noItems } from '../../protocols/neutral/call.ts'
import { describeUsage } from '../../protocols/usage/usage-shape.ts'

/** Why a report is implausible. */
type UsageFlaw = 'adds_up_to_nothing' | 'takes_back' | 'far_too_much'

export interface UsageMeter {
  /** Bytes of the request were sent upstream, or may have been. */
  forwarded: boolean
  /** The last report; undefined if there was none or if the last one is implausible. */
  usage: Usage | undefined
  /** The last plausible report; later reports must not be lower. */
  plausible: Usage | undefined
  /** The first implausible report: the reason, and its fields and numbers. */
  implausible?: { readonly why: UsageFlaw; readonly shape: string | undefined }
  /** Reports far above this are implausible. Undefined until an attempt begins. */
  believed: BelievedUsage | undefined
  /** The bytes of the text that was written, for an estimate where no usage is reported. */
  outputBytes: number
  /** How many of these bytes are reasoning that the model shows. */
  thoughtBytes: number
  /** How many of these bytes stand for images, and how many for audio. */
  pictureBytes: number
  soundBytes: number
  /** The sizes of all items that an event held whole. */
  items: ItemSizes | undefined
  /**
   * When the request was sent, or when the model last wrote or reported something. Moved on by the time in which the
   * gateway did not read.
   */
  lastOutputMs: number
  /** Since when the gateway does not read from the upstream; infinite while it does. */
  notReadingSinceMs: number
  /** How long the model was silent since its last report, up to `heardMs`. */
  silentMs: number
  /** The output bytes at the time of the last usage report. */
  reportedBytes: number
  /** The output bytes that were written to the caller's socket, or that became part of a collected answer. */
  deliveredBytes: number
  /** How long the upstream had to wait because the caller did not read, and until when. */
  waitedMs: number
  waitedUntilMs: number
  content: boolean
  /** The model reads its input once more than the first report says. */
  readsAgain: boolean
  /** Some content was written to the caller; for streams only. */
  delivered: boolean
  finishes: number
  /** How many choices the answer has shown, in a dialect without a last event. */
  choices: number
  /** Every choice is finished. */
  finished: boolean
  /** The upstream's message that it failed in the middle, although the answer is complete in form. */
  failed: string | undefined
  /** The error that the upstream named for it. */
  failure: UpstreamError | undefined
  /** The service class that the answer reports. */
  serviceClass: string | undefined
  /** How often the provider's own tools were seen to be used. */
  readonly uses: Partial<Record<Unit, number>>
  /** The distinct searches that the provider named. */
  queries: Set<string> | undefined
  /** The services that were seen to run something on a machine of the provider. */
  machines: Set<string> | undefined
}

export const newMeter = (): UsageMeter => ({
  forwarded: false,
  usage: undefined,
  plausible: undefined,
  believed: undefined,
  outputBytes: 0,
  thoughtBytes: 0,
  pictureBytes: 0,
  soundBytes: 0,
  items: undefined,
  lastOutputMs: 0,
  notReadingSinceMs: Number.POSITIVE_INFINITY,
  silentMs: 0,
  reportedBytes: 0,
  deliveredBytes: 0,
  waitedMs: 0,
  waitedUntilMs: 0,
  content: false,
  readsAgain: false,
  delivered: false,
  finishes: 0,
  choices: 0,
  finished: false,
  failed: undefined,
  failure: undefined,
  serviceClass: undefined,
  uses: {},
  queries: undefined,
  machines: undefined,
})

/** A stream reports usage once or often; the last report counts, unless it is implausible. */
export function noteUsage(meter: UsageMeter, report: UsageReport, json?: unknown): void {
  meter.reportedBytes = meter.outputBytes
  const why = findFlaw(report, meter)
  if (report !== 'nonsense' && why === undefined) {
    meter.usage = withEarlierSearches(report, meter.plausible)
    meter.plausible = meter.usage
    return
  }
  meter.implausible ??= { why: why ?? 'adds_up_to_nothing', shape: describeUsage(json) }
  meter.usage = undefined
}

function findFlaw(report: UsageReport, { plausible, believed }: UsageMeter): UsageFlaw | undefined {
  if (report === 'nonsense') return 'adds_up_to_nothing'
  if (plausible !== undefined && usageShrinks(plausible, report)) return 'takes_back'
  return believed !== undefined && isExcessive(report, believed) ? 'far_too_much' : undefined
}

/** A search may be reported in one event and be missing in later ones. */
function withEarlierSearches(report: Usage, earlier: Usage | undefined): Usage {
  const before = earlier?.searches ?? 0
  return before > (report.searches ?? 0) ? { ...report, searches: before } : report
}

/** The last event may list none of the items that the stream has shown. */
function withSeenSearches(report: UsageReport, { uses: { searches = 0 } }: UsageMeter): UsageReport {
  return report === 'nonsense' || searches <= (report.searches ?? 0) ? report : { ...report, searches }
}

/** Gaps up to this length are normal while a model writes, and do not count as reasoning. */
const GAP_MS = 1_000

/** How long the model may have reasoned since its last report. */
export function silentMs(meter: UsageMeter, nowMs: number): number {
  const { forwarded, finished, usage } = meter
  if (!forwarded || (finished && usage !== undefined)) return 0
  return meter.silentMs + (finished ? 0 : Math.max(0, waitedUntil(meter, nowMs) - meter.lastOutputMs - GAP_MS))
}

/** Until when the gateway waited for the upstream: nothing can arrive while it does not read. */
const waitedUntil = ({ notReadingSinceMs }: UsageMeter, nowMs: number): number => Math.min(nowMs, notReadingSinceMs)

/** The gateway has work to do, or has no room for more: time that passes now is not the upstream's. */
export function stopReading(meter: UsageMeter, nowMs: number): void {
  meter.notReadingSinceMs = waitedUntil(meter, nowMs)
}

export function resumeReading(meter: UsageMeter, nowMs: number): void {
  if (meter.notReadingSinceMs < nowMs) meter.lastOutputMs += nowMs - meter.notReadingSinceMs
  meter.notReadingSinceMs = Number.POSITIVE_INFINITY
}

function noteActivity(meter: UsageMeter, nowMs: number): void {
  meter.silentMs = silentMs(meter, nowMs)
  meter.lastOutputMs = waitedUntil(meter, nowMs)
}

export function noteFrame(meter: UsageMeter, reading: FrameReading, choices: number, nowMs = 0): void {
  const thoughtBytes = reading.thoughtBytes ?? 0
  if (reading.outputBytes > thoughtBytes) noteActivity(meter, nowMs)
  meter.outputBytes += reading.outputBytes
  meter.thoughtBytes += thoughtBytes
  meter.pictureBytes += reading.pictureBytes ?? 0
  meter.soundBytes += reading.soundBytes ?? 0
  if (reading.items !== undefined) noteItems(meter, reading, nowMs)
  meter.finishes += reading.finishes
  meter.choices = Math.max(meter.choices, reading.choices ?? 0)
  meter.finished = meter.finishes >= choices
  meter.content ||= reading.kind === 'content' || meter.outputBytes > 0
  meter.readsAgain ||= reading.readsAgain === true
  if (reading.usage !== undefined) {
    noteUsage(meter, reading.searchesUntold ? withSeenSearches(reading.usage, meter) : reading.usage, reading.json)
    if (meter.usage !== undefined) [meter.silentMs, meter.lastOutputMs] = [0, waitedUntil(meter, nowMs)]
  }
  if (reading.serviceClass !== undefined) meter.serviceClass = reading.serviceClass
  if (meter.failed === undefined) [meter.failed, meter.failure] = [reading.failed, reading.failure]
  noteUses(meter, reading)
}

/**
 * An answer is at least as large as its items. What their deltas have shown is counted already; an upstream that sends
 * no deltas, or not all, has only this.
 */
function noteItems(meter: UsageMeter, { items, usesOfAll }: FrameReading, nowMs: number): void {
  const whole = usesOfAll === undefined ? addItems(meter.items ?? noItems, items!) : items!
  meter.items = whole
  const counted = meter.outputBytes - meter.pictureBytes - meter.soundBytes
  const text = Math.max(0, whole.textBytes - counted)
  const thoughts = Math.min(text, Math.max(0, whole.thoughtBytes - meter.thoughtBytes))
  const pictures = Math.max(0, whole.pictureBytes - meter.pictureBytes)
  const sound = Math.max(0, whole.soundBytes - meter.soundBytes)
  const missing = text + pictures + sound
  if (missing > thoughts) noteActivity(meter, nowMs)
  meter.outputBytes += missing
  meter.thoughtBytes += thoughts
  meter.pictureBytes += pictures
  meter.soundBytes += sound
  for (const [unit, count] of Object.entries(usesOfAll ?? {})) {
    meter.uses[unit as Unit] = Math.max(meter.uses[unit as Unit] ?? 0, count)
  }
}

/**
 * Notes that the upstream has ended its answer. Where the end of the bytes is its end, it may have fewer choices than were
 * requested: it is complete if every choice that has begun is finished.
 */
export function noteAnswerEnd(meter: UsageMeter): void {
  meter.finished ||= meter.choices > 0 && meter.finishes >= meter.choices
}

/** All that has arrived was passed on. */
export function noteDelivered(meter: UsageMeter): void {
  meter.deliveredBytes = meter.outputBytes
}

/** How long an upstream tolerates a caller that does not read, and how long after that it may still break off. */
const TOLERATED_WAIT_MS = 1_000
const RECENT_MS = 60_000

/** Notes that the caller did not read between these times. */
export function noteWait(meter: UsageMeter, fromMs: number, untilMs: number): void {
  if (fromMs - meter.waitedUntilMs > RECENT_MS) meter.waitedMs = 0
  meter.waitedMs += untilMs - fromMs
  meter.waitedUntilMs = untilMs
}

/** Whether the upstream may have broken off because the caller did not read. */
export const wasStalledByCaller = ({ waitedMs, waitedUntilMs }: UsageMeter, nowMs: number): boolean =>
  waitedMs > TOLERATED_WAIT_MS && nowMs - waitedUntilMs <= RECENT_MS

/** Far more searches than a model runs for one answer, and longer ones. No more is remembered. */
const QUERIES_MAX = 1_000
const QUERY_CHARS_MAX = 1_000

/** A search counts whether or not usage is reported with it, and once however often it is named. */
function noteQueries(meter: UsageMeter, queries: readonly string[]): void {
  meter.queries ??= new Set()
  for (const query of queries) if (meter.queries.size < QUERIES_MAX) meter.queries.add(query.slice(0, QUERY_CHARS_MAX))
}

type ToolUses = Pick<AnswerReading, 'uses' | 'queries' | 'machines'>

export function noteUses(meter: UsageMeter, { uses, queries, machines }: ToolUses): void {
  if (queries !== undefined) noteQueries(meter, queries)
  if (machines !== undefined && machines.length > 0) {
    meter.machines ??= new Set()
    for (const name of machines) meter.machines.add(name)
  }
  if (uses === undefined) return
  for (const [unit, count] of Object.entries(uses)) meter.uses[unit as Unit] = (meter.uses[unit as Unit] ?? 0) + count
}
