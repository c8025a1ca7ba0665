// The times of a call as its record stores them, in little space: the timeline (`auth 0 0.1,read 0.1 0.5,…`: the stage,
// when it began, how long it took) and the attempts (JSON arrays). All are milliseconds since the request arrived.
// Records of earlier versions have only durations: of stages as a JSON object, of attempts as the third value.

/** The stages of a timeline. A stage that was not reached is absent; one that ran twice is there twice. */
export const timelineStages = ['auth', 'read', 'limit', 'route', 'hold', 'wait', 'adapt', 'forward', 'cost'] as const
export type TimelineStage = (typeof timelineStages)[number]

export interface TimelineSpan {
  readonly stage: TimelineStage
  /** Null in records of earlier versions. */
  readonly atMs: number | null
  readonly ms: number
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10

/** A span, to be joined with commas. */
export const spanText = (stage: TimelineStage, atMs: number, ms: number): string =>
  `${stage} ${tenths(atMs)} ${tenths(Math.max(0, ms))}`

/** The names that stages had in records of earlier versions. */
const earlierNames: Readonly<Record<string, TimelineStage>> = {
  Auth: 'auth',
  RateLimit: 'limit',
  Route: 'route',
  deduct: 'hold',
  Adapter: 'adapt',
  fwd: 'forward',
  cost: 'cost',
}

/** Reads the column `timings`, in the order of time. `stored` is its text, or the parsed JSON of an earlier version. */
export function readTimeline(stored: unknown): TimelineSpan[] {
  if (typeof stored === 'string') {
    const spans = stored.split(',').flatMap(span => {
      const [stage, atMs, ms] = span.split(' ')
      return isStage(stage) ? [{ stage, atMs: Number(atMs), ms: Number(ms) }] : []
    })
    return spans.sort((a, b) => a.atMs - b.atMs)
  }
  if (typeof stored !== 'object' || stored === null) return []
  return Object.entries(stored).flatMap(([name, ms]) => {
    const stage = earlierNames[name]
    return stage === undefined ? [] : [{ stage, atMs: null, ms: Number(ms) }]
  })
}

const isStage = (word: string | undefined): word is TimelineStage =>
  (timelineStages as readonly (string | undefined)[]).includes(word)

/** One attempt of a call. */
export interface RecordedAttempt {
  readonly channel: string
  /** Null in records of earlier versions. */
  readonly model: string | null
  /** When it began. Null in records of earlier versions. */
  readonly atMs: number | null
  /** Until it failed, or until the end of the answer. In records of earlier versions: until the answer began. */
  readonly ms: number
  /** From its beginning to the first content. Null if none arrived. */
  readonly firstMs: number | null
  /** The HTTP status of the upstream. Null if it sent none. */
  readonly status: number | null
  readonly verdict: string
}

type AttemptColumns = [
  channel: string,
  verdict: string,
  ms: number,
  atMs?: number,
  status?: number | null,
  firstMs?: number | null,
  /** Only where it is not the model of the record. */
  model?: string,
]

/** An attempt as the column `attempts` has it. `recordModel` is the model of the record. */
export function attemptColumns(attempt: RecordedAttempt, recordModel: string): AttemptColumns {
  const { channel, verdict, ms, status, firstMs, model } = attempt
  const columns: AttemptColumns = [channel, verdict, tenths(ms), tenths(attempt.atMs ?? 0), status]
  const isOther = model !== null && model !== recordModel
  if (firstMs !== null || isOther) columns.push(firstMs === null ? null : tenths(firstMs))
  if (isOther) columns.push(model)
  return columns
}

/** Reads the column `attempts`. */
export function readAttempts(stored: unknown, recordModel: string | null): RecordedAttempt[] {
  if (!Array.isArray(stored)) return []
  return stored.map((columns: AttemptColumns) => {
    const [channel, verdict, ms, atMs = null, status = null, firstMs = null, model] = columns
    return { channel, model: model ?? (atMs === null ? null : recordModel), atMs, ms, firstMs, status, verdict }
  })
}
