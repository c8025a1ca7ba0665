// Figures of some calls that are added up before they are written: first by what a call has in common with others of
// its minute, then for each of the cuts and spans that they belong to.

import type { Histogram } from '../../base/collections/latency-histogram.ts'
import { addHistogram } from '../../base/collections/latency-histogram.ts'
import type { Cut, Span } from './plan.ts'
import { counts, cutNames, cuts, isKept, keepMs, spanAt, spans, sums } from './plan.ts'

export interface Figures {
  /** In the order of `counts` and of `sums`. */
  readonly counts: number[]
  readonly sums: bigint[]
  /** Until the first content, and until the end. */
  readonly first: Histogram
  readonly took: Histogram
}

export const noFigures = (): Figures => ({
  counts: new Array<number>(counts.length).fill(0),
  sums: new Array<bigint>(sums.length).fill(0n),
  first: new Map(),
  took: new Map(),
})

export function addFigures(to: Figures, from: Figures): void {
  for (let at = 0; at < to.counts.length; at++) to.counts[at]! += from.counts[at]!
  for (let at = 0; at < to.sums.length; at++) if (from.sums[at] !== 0n) to.sums[at]! += from.sums[at]!
  addHistogram(to.first, from.first)
  addHistogram(to.took, from.took)
}

/** Whose calls; models and channels by the number of their name. */
export interface Whose {
  readonly accountId: number
  readonly keyId: number
  readonly model: number
  readonly channel: number
}

interface Cell extends Whose {
  readonly ms: number
  readonly figures: Figures
}

/** One row of the file, or what is to be added to it. */
export interface Share {
  readonly cut: Cut
  readonly span: Span
  readonly one: number
  readonly other: number
  readonly at: number
  readonly figures: Figures
}

export const ownersOf: Readonly<Record<Cut, (whose: Whose) => readonly [one: number, other: number]>> = {
  all: () => [0, 0],
  account: ({ accountId }) => [accountId, 0],
  key: ({ keyId }) => [keyId, 0],
  model: ({ model }) => [model, 0],
  channel: ({ channel }) => [channel, 0],
  modelChannel: ({ model, channel }) => [model, channel],
  keyModel: ({ keyId, model }) => [keyId, model],
}

export class Cells {
  readonly #cells = new Map<string, Cell>()
  readonly #nowMs: number

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#cells.size
  }

  /** Those to which a call of this time is added. */
  at(ms: number, whose: Whose): Figures {
    const span = this.#finest(ms)
    const name = `${span} ${spanAt(span, ms)} ${whose.accountId} ${whose.keyId} ${whose.model} ${whose.channel}`
    let cell = this.#cells.get(name)
    if (cell === undefined) {
      cell = { ms, ...whose, figures: noFigures() }
      this.#cells.set(name, cell)
    }
    return cell.figures
  }

  /** What each row is to have more; nothing of rows that would not be kept. In the order of the file. */
  shares(): readonly Share[] {
    const nowMs = this.#nowMs
    const shares = new Map<string, Share>()
    for (const cell of this.#cells.values()) {
      const times = spans.map(span => [span, spanAt(span, cell.ms)] as const)
      for (const cut of cutNames) {
        const [one, other] = ownersOf[cut](cell)
        for (const [span, at] of times) {
          if (!isKept(keepMs[cut], span, { at, nowMs })) continue
          const name = `${cut} ${span} ${one} ${other} ${at}`
          const share = shares.get(name)
          if (share !== undefined) addFigures(share.figures, cell.figures)
          else shares.set(name, { cut, span, one, other, at, figures: copied(cell.figures) })
        }
      }
    }
    return [...shares.values()].sort(inOrder)
  }

  /** What is finer is no longer kept of that time. */
  #finest(ms: number): Span {
    const { all } = keepMs
    return spans.find(span => isKept(all, span, { at: spanAt(span, ms), nowMs: this.#nowMs })) ?? 'month'
  }
}

export function copied(figures: Figures): Figures {
  const copy = noFigures()
  addFigures(copy, figures)
  return copy
}

const inOrder = (one: Share, other: Share): number =>
  cuts[one.cut] - cuts[other.cut] ||
  spans.indexOf(one.span) - spans.indexOf(other.span) ||
  one.one - other.one ||
  one.other - other.other ||
  one.at - other.at
