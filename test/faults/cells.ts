// The cells of the fault matrix: which fault, plain or streamed, for a caller of which dialect on an upstream of which.

import type { Dialect as Wire } from '../../tools/fake-upstream/dialect.ts'
import { dialects as wires } from '../../tools/fake-upstream/dialects.ts'
import type { Fault, FaultSettings } from '../../tools/fake-upstream/faults.ts'
import { faultsIn } from '../../tools/fake-upstream/faults.ts'
import type { Speaker } from '../dialects/speaking.ts'
import { callers } from '../dialects/speaking.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialects } from '../dialects/upstreams.ts'
import { chanceOf } from '../support/chance.ts'

export interface Cell {
  readonly number: number
  readonly fault: Fault
  readonly stream: boolean
  readonly caller: Speaker
  readonly upstream: Dialect
  /** The upstream goes on after its first content only when the caller has it; else as fast as it can. */
  readonly gated: boolean
}

export const faultName = ({ id, name }: Pick<Fault, 'id' | 'name'>): string => `${id} ${name}`

export const cellName = ({ fault, stream, caller, upstream }: Cell): string =>
  `${faultName(fault)}, ${stream ? 'streamed' : 'plain'}, ${caller} on ${upstream}`

export const isNative = ({ caller, upstream }: Cell): boolean => caller === upstream

const MIB = 1024 * 1024

/** As long as an attempt may take here. */
export const deadlineMs = 1_500

/** Of one event: a megabyte is refused in the same way as many, and sooner. */
export const eventBytesMax = MIB

/** Large ones are larger than any bound of ours, and slow ones slower; but no more than that. */
export const smallSettings: Partial<FaultSettings> = {
  deadlineMs,
  idleMs: deadlineMs,
  byteMs: 20,
  tinyChunks: 2_000,
  streamBytes: 3 * MIB,
  encodings: 5,
  bodyBytes: 34 * MIB,
  bombBytes: 34 * MIB,
  lineBytes: 2 * MIB,
}

const wireOf = (dialect: Dialect): Wire => wires.find(({ name }) => name === dialect)!

type Place = Omit<Cell, 'number' | 'gated'>

const isMeant = ({ fault, stream }: Place): boolean => fault.asks === 'either' || (fault.asks === 'stream') === stream

/** Whose first content may not leave by itself: nobody asked for it, it comes after an end, or its CR may be a CRLF. */
const WAITING = /^F28 lines end in CR$|^F32 (finish and usage before the text|a choice that .*|a negative choice)$/

/** Of the others, half. */
function numbered(places: readonly Place[], chance: () => number = chanceOf(1)): readonly Cell[] {
  const mayBeGated = ({ fault, stream }: Place): boolean => stream && !WAITING.test(faultName(fault))
  return places.map((place, number) => ({ ...place, number, gated: mayBeGated(place) && chance() < 0.5 }))
}

/** Every fault, every pair of dialects, both forms; the seed says in which order, and which are gated. */
export function allCells(seed: number, settings: Partial<FaultSettings> = smallSettings): readonly Cell[] {
  const chance = chanceOf(seed)
  const places = dialects
    .flatMap(upstream =>
      faultsIn(wireOf(upstream), settings).flatMap(fault =>
        callers.flatMap(caller => [false, true].map(stream => ({ fault, stream, caller, upstream }))),
      ),
    )
    .filter(place => isMeant(place) && (place.stream || place.caller !== 'gemini-array'))
  const drawn = places.map(place => [chance(), place] as const).sort(([one], [other]) => one - other)
  return numbered(
    drawn.map(([, place]) => place),
    chance,
  )
}

/** What goes wrong below the dialects goes wrong in the same way whatever is translated above. */
const BELOW = /^F(1|2|3|4|5|6|7|8|9|10|16|17|18|19|20|21|22|29) /

interface Row {
  readonly name: string
  /** Its place in the table. */
  readonly at: number
  readonly stream: boolean
  /** Where it can be committed. */
  readonly upstreams: readonly Dialect[]
  faultOf(upstream: Dialect): Fault
}

/** Every fault in both forms, once for all dialects. */
function rowsOf(settings: Partial<FaultSettings>): readonly Row[] {
  const tables = dialects.map(dialect => [dialect, faultsIn(wireOf(dialect), settings)] as const)
  const names = [...new Set(tables.flatMap(([, faults]) => faults.map(faultName)))]
  return names.flatMap((name, at) => {
    const able = new Map(
      tables.flatMap(([dialect, faults]) =>
        faults.filter(fault => faultName(fault) === name).map(fault => [dialect, fault] as const),
      ),
    )
    const own = { name, at, upstreams: [...able.keys()], faultOf: (upstream: Dialect) => able.get(upstream)! }
    return [false, true].map(stream => ({ ...own, stream }))
  })
}

/**
 * Every fault in both forms, so that each dialect comes in once and goes out once; which meet which moves on from fault
 * to fault. What is said in a dialect is also said natively in each.
 */
export function pairwiseCells(settings: Partial<FaultSettings> = smallSettings): readonly Cell[] {
  const count = dialects.length
  const places = rowsOf(settings).flatMap(({ name, at, stream, upstreams, faultOf }) =>
    upstreams.flatMap(upstream => {
      const isBelow = BELOW.test(name)
      const turn = at + Number(stream)
      const shift = isBelow ? turn % count : 1 + (turn % (count - 1))
      const other = dialects[(dialects.indexOf(upstream) + shift) % count]!
      // The two forms of a stream take turns.
      const caller: Speaker = other === 'gemini' && stream && at % 2 === 0 ? 'gemini-array' : other
      const speakers = isBelow ? [caller] : [upstream, caller]
      return speakers.map(speaker => ({ fault: faultOf(upstream), stream, caller: speaker, upstream }))
    }),
  )
  return numbered(places.filter(isMeant))
}

/** Every fault in both forms, once, each in the next pair of dialects; all that can are gated. */
export function fallbackCells(settings: Partial<FaultSettings> = smallSettings): readonly Cell[] {
  const places = rowsOf(settings).map(({ at, stream, upstreams, faultOf }) => {
    const upstream = upstreams[at % upstreams.length]!
    const caller = dialects[(at * 2 + Number(stream)) % dialects.length]!
    return { fault: faultOf(upstream), stream, caller, upstream }
  })
  return numbered(places.filter(isMeant), () => 0)
}
