// The input of a choice: plain data about targets and channels. It is built once for each model name and kept until an
// operator changes the configuration; nothing in it belongs to one call.

import type { Health } from '../health/health.ts'

/** One channel as routing sees it. All targets that use the channel share its health. */
export interface ChannelOption {
  /** The id of the channel. */
  readonly id: string
  /** The lowest number comes first. */
  readonly priority: number
  /** Relative to channels of the same priority. A channel with weight 0 is used only when no other can take the call. */
  readonly weight: number
  readonly health: Health
}

/** A target that may answer the call, and the channels that reach it. */
export interface TargetOption {
  /** `<provider>/<model>`. */
  readonly name: string
  readonly priority: number
  readonly weight: number
  /** Whether the call would have to be translated into another dialect. */
  readonly needsTranslation: boolean
  /** The cost of a typical call, in a unit that all targets share; 0: free. */
  readonly price: number
  readonly channels: readonly ChannelOption[]
}
