// Why a call went where it went, as numbers: how many channels there were, and how many were left after each step.

/** One channel of one model of the name, as the dry run of a call lists it. */
export interface ExplainedCandidate {
  readonly model: string
  readonly channel: string | null
  /** Null: it can take the call. */
  readonly dropped: string | null
  readonly availableInMs?: number | null
  readonly share?: number | null
  readonly score?: number | null
  readonly tags?: readonly string[]
}

/** `routing` of a record: what was decided before the first attempt. */
interface StoredRouting {
  readonly candidates: number | null
  readonly policy: string | null
  readonly by: string | null
  readonly affinity: string | null
  readonly dropped: Readonly<Record<string, number>>
  readonly limits: readonly {
    readonly resource: string
    readonly span: string | null
    readonly remaining: number
    readonly limit: number
  }[]
  readonly overrides: readonly string[]
}

/** In the order in which the gateway asks them. */
const funnelSteps = ['name', 'rights', 'fit', 'money', 'place', 'health', 'room'] as const
type FunnelStep = (typeof funnelSteps)[number]

const stepOfReason: Readonly<Record<string, FunnelStep>> = {
  tags_missing: 'rights',
  model_forbidden: 'rights',
  not_affordable: 'money',
  kept_elsewhere: 'place',
  tried: 'health',
  broken: 'health',
  credential_bad: 'health',
  quota_spent: 'health',
  rate_limited: 'health',
  upstream_limit: 'health',
  busy: 'room',
  concurrency_capped: 'room',
  requests_capped: 'room',
  tokens_capped: 'room',
}

export interface FunnelRow {
  readonly step: FunnelStep
  /** How many channels are left after this step. */
  readonly left: number
  /** How many this step dropped, by reason. */
  readonly dropped: readonly (readonly [reason: string, count: number])[]
}

/** The steps that drop a channel, after the number of all. A reason that is not known belongs to the model itself. */
export function funnelOf(total: number, dropped: Readonly<Record<string, number>>): readonly FunnelRow[] {
  const rows: FunnelRow[] = [{ step: 'name', left: total, dropped: [] }]
  let left = total
  for (const step of funnelSteps.slice(1)) {
    const here = Object.entries(dropped).filter(([reason, n]) => n > 0 && (stepOfReason[reason] ?? 'fit') === step)
    if (here.length === 0) continue
    left = Math.max(0, left - here.reduce((sum, [, n]) => sum + n, 0))
    rows.push({ step, left, dropped: here })
  }
  return rows
}

export function countDropped(candidates: readonly ExplainedCandidate[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { dropped } of candidates) if (dropped !== null) counts[dropped] = (counts[dropped] ?? 0) + 1
  return counts
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)

type LimitTuple = readonly [resource: string, span: string, remaining: number, limit: number]

/** Reads `routing` of a record, also as older records have it. Undefined: the record says nothing. */
export function readRouting(value: unknown): StoredRouting | undefined {
  if (!isObject(value)) return undefined
  const { candidates, dropped, limits, overrides } = value
  return {
    candidates: typeof candidates === 'number' ? candidates : null,
    policy: textOrNull(value.policy),
    by: textOrNull(value.by),
    affinity: textOrNull(value.affinity),
    dropped: isObject(dropped) ? (dropped as Record<string, number>) : {},
    limits: Array.isArray(limits)
      ? limits.map((limit: LimitTuple | StoredRouting['limits'][number]) => {
          if (!Array.isArray(limit)) return limit as StoredRouting['limits'][number]
          const [resource, span, remaining, most] = limit as unknown as LimitTuple
          return { resource, span: span === '' ? null : span, remaining, limit: most }
        })
      : [],
    overrides: Array.isArray(overrides) ? (overrides as string[]) : [],
  }
}
