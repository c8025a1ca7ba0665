// The cells of the fault matrix: a fault, plain or streamed, for a caller of one dialect on an upstream of another.

import type { Dialect as Wire } from '../../tools/fake-upstream/dialect.ts'
import { dialects as wires } from '../../tools/fake-upstream/dialects.ts'
import type { Fault, FaultSettings } from '../../tools/fake-upstream/faults.ts'
import { faultsIn } from '../../tools/fake-upstream/faults.ts'
import type { CallerDialect } from '../dialects/raw-callers.ts'
import { callers } from '../dialects/raw-callers.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialects } from '../dialects/upstreams.ts'
import { chanceOf } from '../support/chance.ts'

export interface Cell {
  readonly number: number
  readonly fault: Fault
  readonly stream: boolean
  readonly caller: CallerDialect
  readonly upstream: Dialect
  /** After its first content the upstream waits until the caller has it; else it continues at once. */
  readonly gated: boolean
}

export const faultName = ({ id, name }: Pick<Fault, 'id' | 'name'>): string => `${id} ${name}`

export const cellName = ({ fault, stream, caller, upstream }: Cell): string =>
  `${faultName(fault)}, ${stream ? 'streamed' : 'plain'}, ${caller} on ${upstream}`

export const isNative = ({ caller, upstream }: Cell): boolean => caller === upstream

const MIB = 1024 * 1024

/** The deadline of an attempt in these tests. */
export const deadlineMs = 1_500

/** The largest event: one megabyte is refused in the same way as many, and sooner. */
export const eventBytesMax = MIB

/** Large faults just exceed every bound of the gateway, slow ones every deadline. */
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

type CellInput = Omit<Cell, 'number' | 'gated'>

const hasThisForm = ({ fault, stream }: CellInput): boolean =>
  fault.asks === 'either' || (fault.asks === 'stream') === stream

/** Faults whose first content may not be sent at once: it was not requested, comes after an end, or its CR may be a CRLF. */
const WAITING = /^F28 lines end in CR$|^F32 (finish and usage before the text|a choice that .*|a negative choice)$/

/** Numbers the cells, and gates half of those that can be gated. */
function numbered(inputs: readonly CellInput[], chance: () => number = chanceOf(1)): readonly Cell[] {
  const mayBeGated = ({ fault, stream }: CellInput): boolean => stream && !WAITING.test(faultName(fault))
  return inputs.map((input, number) => ({ ...input, number, gated: mayBeGated(input) && chance() < 0.5 }))
}

/** Every fault, every pair of dialects, plain and streamed; the seed decides the order and which cells are gated. */
export function allCells(seed: number, settings: Partial<FaultSettings> = smallSettings): readonly Cell[] {
  const chance = chanceOf(seed)
  const inputs = dialects
    .flatMap(upstream =>
      faultsIn(wireOf(upstream), settings).flatMap(fault =>
        callers.flatMap(caller => [false, true].map(stream => ({ fault, stream, caller, upstream }))),
      ),
    )
    .filter(input => hasThisForm(input) && (input.stream || input.caller !== 'gemini-array'))
  const drawn = inputs.map(input => [chance(), input] as const).sort(([one], [other]) => one - other)
  return numbered(
    drawn.map(([, input]) => input),
    chance,
  )
}

/** Faults below the dialects: they are the same for every translation. */
const BELOW = /^F(1|2|3|4|5|6|7|8|9|10|16|17|18|19|20|21|22|29) /

interface Row {
  readonly name: string
  /** Its index in the table. */
  readonly at: number
  readonly stream: boolean
  /** Dialects whose upstreams can have the fault. */
  readonly upstreams: readonly Dialect[]
  faultOf(upstream: Dialect): Fault
}

/** Every fault, plain and streamed, once for all dialects. */
function rowsOf(settings: Partial<FaultSettings>): readonly Row[] {
  const tables = dialects.map(dialect => [dialect, faultsIn(wireOf(dialect), settings)] as const)
  const names = [...new Set(tables.flatMap(([, faults]) => faults.map(faultName)))]
  return names.flatMap((name, at) => {
    const faultsByDialect = new Map(
      tables.flatMap(([dialect, faults]) =>
        faults.filter(fault => faultName(fault) === name).map(fault => [dialect, fault] as const),
      ),
    )
    const row = {
      name,
      at,
      upstreams: [...faultsByDialect.keys()],
      faultOf: (upstream: Dialect) => faultsByDialect.get(upstream)!,
    }
    return [false, true].map(stream => ({ ...row, stream }))
  })
}

/**
 * Every fault, plain and streamed, with each dialect once as caller and once as upstream; the pairs shift from fault to
 * fault. Faults within a dialect also run natively in each dialect.
 */
export function pairwiseCells(settings: Partial<FaultSettings> = smallSettings): readonly Cell[] {
  const count = dialects.length
  const inputs = rowsOf(settings).flatMap(({ name, at, stream, upstreams, faultOf }) =>
    upstreams.flatMap(upstream => {
      const isBelow = BELOW.test(name)
      const turn = at + Number(stream)
      const shift = isBelow ? turn % count : 1 + (turn % (count - 1))
      const other = dialects[(dialects.indexOf(upstream) + shift) % count]!
      // The two stream formats of Gemini alternate.
      const caller: CallerDialect = other === 'gemini' && stream && at % 2 === 0 ? 'gemini-array' : other
      const speakers = isBelow ? [caller] : [upstream, caller]
      return speakers.map(speaker => ({ fault: faultOf(upstream), stream, caller: speaker, upstream }))
    }),
  )
  return numbered(inputs.filter(hasThisForm))
}

/** Every fault, plain and streamed, once, each in the next pair of dialects; all cells that can be gated are. */
export function fallbackCells(settings: Partial<FaultSettings> = smallSettings): readonly Cell[] {
  const inputs = rowsOf(settings).map(({ at, stream, upstreams, faultOf }) => {
    const upstream = upstreams[at % upstreams.length]!
    const caller = dialects[(at * 2 + Number(stream)) % dialects.length]!
    return { fault: faultOf(upstream), stream, caller, upstream }
  })
  return numbered(inputs.filter(hasThisForm), () => 0)
}
