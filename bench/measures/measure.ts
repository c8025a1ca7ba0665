// What each measure is given and what it gives back.

import type { Peers } from '../subjects/peers.ts'
import type { WeirHome } from '../subjects/weir-home.ts'
import type { Workbench } from '../system/workbench.ts'

export interface Measuring {
  readonly bench: Workbench
  readonly home: WeirHome
  /** Those of --peers, for the measures that compare. */
  readonly peers: Peers
  /** A tenth of the counts. */
  readonly quick: boolean
  say(line: string): void
}

/** One thing we promise: what it is, the most it may be, and what it was. */
export interface Target {
  readonly what: string
  readonly most: number
  readonly unit: string
  readonly measured: number
}

export interface Section {
  readonly title: string
  readonly about: string
  /** The first row is the head. */
  readonly table: readonly (readonly string[])[]
  readonly targets: readonly Target[]
}

export type Measure = (measuring: Measuring) => Promise<Section>
