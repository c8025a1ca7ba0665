// What is seen of an answer while it passes, of the attempt under way; what a failed attempt gave counts for nothing.

import type { UpstreamWords } from '../../base/errors.ts'
import type { Unit, Usage, UsageReport } from '../../base/money/usage.ts'
import { shrinks } from '../../base/money/usage.ts'
import type { AnswerReading, FrameReading } from '../../protocols/neutral/call.ts'
import { usageShape } from '../../protocols/usage/usage-shape.ts'

export interface Meter {
  /** Bytes of the request went upstream, or may have. */
  forwarded: boolean
  /** As last reported; undefined if nothing was, or if the last report cannot be believed. */
  usage: Usage | undefined
  /** The last report that could be believed, which later ones must not fall below. */
  believed: Usage | undefined
  /** The first report that could not be believed: why, and its names and numbers. */
  disbelieved?: { readonly why: 'adds_up_to_nothing' | 'takes_back'; readonly shape: string | undefined }
  /** Written text in bytes of prose, for where no usage came. */
  outputBytes: number
  /** How much of that are thoughts that the model shows. */
  thoughtBytes: number
  /** How much of it stands for pictures, and how much for sound. */
  pictureBytes: number
  soundBytes: number
  /** When the request was sent, or the model was last heard to write something of its answer, or to report. */
  heardMs: number
  /** How long the model was silent since its last report, before it was last heard. */
  silentMs: number
  /** How much of that had come when usage was last reported. */
  reportedBytes: number
  /** How much of that has been handed to the caller's socket; kept for streams. */
  deliveredBytes: number
  /** How long its upstream has waited for the caller to read, and until when. */
  waitedMs: number
  waitedUntilMs: number
  content: boolean
  /** Some of it was written to the caller; kept for streams. */
  delivered: boolean
  finishes: number
  /** Every choice is done. */
  finished: boolean
  /** The upstream's words for having failed in the middle of the answer, though its form is whole. */
  failed: string | undefined
  /** The error that it named for it. */
  failure: UpstreamWords | undefined
  /** The class of service that the answer says it was served at. */
  serviceClass: string | undefined
  /** What the provider's own tools were seen to do. */
  readonly uses: Partial<Record<Unit, number>>
  /** The names of the services that were seen to run something on a machine of the provider's. */
  readonly machines: Set<string>
}

export const freshMeter = (): Meter => ({
  forwarded: false,
  usage: undefined,
  believed: undefined,
  outputBytes: 0,
  thoughtBytes: 0,
  pictureBytes: 0,
  soundBytes: 0,
  heardMs: 0,
  silentMs: 0,
  reportedBytes: 0,
  deliveredBytes: 0,
  waitedMs: 0,
  waitedUntilMs: 0,
  content: false,
  delivered: false,
  finishes: 0,
  finished: false,
  failed: undefined,
  failure: undefined,
  serviceClass: undefined,
  uses: {},
  machines: new Set(),
})

/** A stream reports once or again and again; the last word counts, unless it is nonsense or takes something back. */
export function noteUsage(meter: Meter, report: UsageReport, json?: unknown): void {
  const isBelieved = report !== 'nonsense' && !(meter.believed !== undefined && shrinks(meter.believed, report))
  if (!isBelieved) {
    const why = report === 'nonsense' ? 'adds_up_to_nothing' : 'takes_back'
    meter.disbelieved ??= { why, shape: usageShape(json) }
  }
  meter.usage = isBelieved ? withEarlierSearches(report, meter.believed) : undefined
  meter.reportedBytes = meter.outputBytes
  if (isBelieved) meter.believed = meter.usage
}

/** A search may be told of by the event that used what it found, and by none after it. */
function withEarlierSearches(report: Usage, earlier: Usage | undefined): Usage {
  const before = earlier?.searches ?? 0
  return before > (report.searches ?? 0) ? { ...report, searches: before } : report
}

/** A model that writes as it goes leaves gaps, too; so much of each is not taken for thinking. */
const GAP_MS = 1_000

/** How long it may have thought since its last report, up to this moment. */
export function silentMs({ forwarded, finished, usage, ...meter }: Meter, nowMs: number): number {
  if (!forwarded || (finished && usage !== undefined)) return 0
  return meter.silentMs + (finished ? 0 : Math.max(0, nowMs - meter.heardMs - GAP_MS))
}

function hear(meter: Meter, nowMs: number): void {
  meter.silentMs = silentMs(meter, nowMs)
  meter.heardMs = nowMs
}

export function noteFrame(meter: Meter, reading: FrameReading, choices: number, nowMs = 0): void {
  const thoughtBytes = reading.thoughtBytes ?? 0
  if (reading.outputBytes > thoughtBytes) hear(meter, nowMs)
  meter.outputBytes += reading.outputBytes
  meter.thoughtBytes += thoughtBytes
  meter.pictureBytes += reading.pictureBytes ?? 0
  meter.soundBytes += reading.soundBytes ?? 0
  meter.finishes += reading.finishes
  meter.finished = meter.finishes >= choices
  meter.content ||= reading.kind === 'content' || reading.outputBytes > 0
  if (reading.usage !== undefined) {
    noteUsage(meter, reading.usage, reading.json)
    if (meter.usage !== undefined) [meter.silentMs, meter.heardMs] = [0, nowMs]
  }
  if (reading.serviceClass !== undefined) meter.serviceClass = reading.serviceClass
  if (meter.failed === undefined) [meter.failed, meter.failure] = [reading.failed, reading.failure]
  noteUses(meter, reading)
}

/** What upstreams bear, and how long after it they may still break off because of it. */
const WAIT_MS = 1_000
const RECENT_MS = 60_000

/** The caller did not read from one moment to the other. */
export function noteWait(meter: Meter, fromMs: number, untilMs: number): void {
  if (fromMs - meter.waitedUntilMs > RECENT_MS) meter.waitedMs = 0
  meter.waitedMs += untilMs - fromMs
  meter.waitedUntilMs = untilMs
}

/** Whether its caller may have made the upstream break off, by not reading. */
export const keptWaiting = ({ waitedMs, waitedUntilMs }: Meter, nowMs: number): boolean =>
  waitedMs > WAIT_MS && nowMs - waitedUntilMs <= RECENT_MS

export function noteUses(meter: Meter, { uses, machines }: Pick<AnswerReading, 'uses' | 'machines'>): void {
  for (const name of machines ?? []) meter.machines.add(name)
  if (uses === undefined) return
  for (const [unit, count] of Object.entries(uses)) meter.uses[unit as Unit] = (meter.uses[unit as Unit] ?? 0) + count
}
