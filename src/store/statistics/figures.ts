// Adds up figures of calls in memory before they are written: first by minute, account, key, model and channel, then
// for each cut and span to which these calls belong.

import type { LatencyHistogram } from '../../base/collections/latency-histogram.ts'
import { addHistogram } from '../../base/collections/latency-histogram.ts'
import type { Cut, Span } from './plan.ts'
import { counts, cutNames, cuts, isKept, keepMs, spanAt, spans, sums } from './plan.ts'

export interface Figures {
  /** The values in the order of `counts` and of `sums` in plan.ts. */
  readonly counts: number[]
  readonly sums: bigint[]
  /** Histograms of the time to the first content and of the whole duration. */
  readonly first: LatencyHistogram
  readonly duration: LatencyHistogram
}

/** The columns of figures in the order of the table. */
export const figureColumns = [...counts, ...sums] as const

/** The columns that are summed up for an end user. */
export const endUserFigures = ['calls', 'errors', 'input_tokens', 'output_tokens', 'cost'] as const

export function figureOf(figures: Figures, name: (typeof figureColumns)[number]): number | bigint {
  const index = (counts as readonly string[]).indexOf(name)
  return index >= 0 ? figures.counts[index]! : figures.sums[(sums as readonly string[]).indexOf(name)]!
}

export const noFigures = (): Figures => ({
  counts: new Array<number>(counts.length).fill(0),
  sums: new Array<bigint>(sums.length).fill(0n),
  first: new Map(),
  duration: new Map(),
})

export function addFigures(to: Figures, from: Figures): void {
  for (let i = 0; i < to.counts.length; i++) to.counts[i]! += from.counts[i]!
  for (let i = 0; i < to.sums.length; i++) if (from.sums[i] !== 0n) to.sums[i]! += from.sums[i]!
  addHistogram(to.first, from.first)
  addHistogram(to.duration, from.duration)
}

/** The dimensions of a call. Models and channels are the numbers of their names in the file. */
export interface CallDimensions {
  readonly accountId: number
  readonly keyId: number
  readonly model: number
  readonly channel: number
}

interface Cell extends CallDimensions {
  readonly ms: number
  readonly figures: Figures
}

/** Figures that are added to one row of the file. */
export interface FigureShare {
  readonly cut: Cut
  readonly span: Span
  readonly one: number
  readonly other: number
  readonly at: number
  readonly figures: Figures
}

export const ownersOf: Readonly<Record<Cut, (whose: CallDimensions) => readonly [one: number, other: number]>> = {
  all: () => [0, 0],
  account: ({ accountId }) => [accountId, 0],
  key: ({ keyId }) => [keyId, 0],
  model: ({ model }) => [model, 0],
  channel: ({ channel }) => [channel, 0],
  modelChannel: ({ model, channel }) => [model, channel],
  keyModel: ({ keyId, model }) => [keyId, model],
}

export class FigureGroups {
  readonly #cells = new Map<string, Cell>()
  readonly #nowMs: number

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#cells.size
  }

  /** The figures to which a call of this time is added. */
  figuresFor(ms: number, whose: CallDimensions): Figures {
    const span = this.#finest(ms)
    const name = `${span} ${spanAt(span, ms)} ${whose.accountId} ${whose.keyId} ${whose.model} ${whose.channel}`
    let cell = this.#cells.get(name)
    if (cell === undefined) {
      cell = { ms, ...whose, figures: noFigures() }
      this.#cells.set(name, cell)
    }
    return cell.figures
  }

  /** The figures to add to each row of the file, in the order of the file. Rows that are not kept are left out. */
  shares(): readonly FigureShare[] {
    const nowMs = this.#nowMs
    const shares = new Map<string, FigureShare>()
    for (const cell of this.#cells.values()) {
      const times = spans.map(span => [span, spanAt(span, cell.ms)] as const)
      for (const cut of cutNames) {
        const [one, other] = ownersOf[cut](cell)
        for (const [span, at] of times) {
          if (!isKept(keepMs[cut], span, { at, nowMs })) continue
          const name = `${cut} ${span} ${one} ${other} ${at}`
          const share = shares.get(name)
          if (share !== undefined) addFigures(share.figures, cell.figures)
          else shares.set(name, { cut, span, one, other, at, figures: copyFigures(cell.figures) })
        }
      }
    }
    return [...shares.values()].sort(inFileOrder)
  }

  /** The finest span that is still kept for a time. */
  #finest(ms: number): Span {
    const { all } = keepMs
    return spans.find(span => isKept(all, span, { at: spanAt(span, ms), nowMs: this.#nowMs })) ?? 'month'
  }
}

export function copyFigures(figures: Figures): Figures {
  const copy = noFigures()
  addFigures(copy, figures)
  return copy
}

const inFileOrder = (one: FigureShare, other: FigureShare): number =>
  cuts[one.cut] - cuts[other.cut] ||
  spans.indexOf(one.span) - spans.indexOf(other.span) ||
  one.one - other.one ||
  one.other - other.other ||
  one.at - other.at
