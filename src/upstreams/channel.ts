// A channel: a provider and one credential, through which calls are sent.

import type { NetworkPath } from '../http/client/network-path.ts'
import type { Overrides } from './overrides.ts'
import type { OpenedKey } from './signing.ts'
import type { ChannelTimeouts } from './timeouts.ts'

export interface Channel extends OpenedKey {
  readonly id: string
  readonly providerId: string
  readonly baseUrl: string
  /** The network path to this address. The key is sent nowhere else. */
  readonly networkPath: NetworkPath
  /** Headers and fields that this channel changes in requests. */
  readonly overrides?: Overrides
  /** Timeouts that differ from those of the provider and the model. */
  readonly timeouts?: ChannelTimeouts
}
