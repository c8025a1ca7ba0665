// The argument and the result of a measure.

import type { Peers } from '../subjects/peers.ts'
import type { WeirHome } from '../subjects/weir-home.ts'
import type { Workbench } from '../system/workbench.ts'

export interface Measuring {
  readonly bench: Workbench
  readonly home: WeirHome
  /** The peers of --peers, for measures that compare. */
  readonly peers: Peers
  /** Makes a tenth of the calls. */
  readonly quick: boolean
  say(line: string): void
}

/** A target: its name, its bound and the measured figure. */
export interface Target {
  readonly what: string
  readonly most: number
  readonly unit: string
  readonly measured: number
}

export interface Section {
  readonly title: string
  readonly about: string
  /** The first row has the titles of the columns. */
  readonly table: readonly (readonly string[])[]
  readonly targets: readonly Target[]
}

export type Measure = (measuring: Measuring) => Promise<Section>
