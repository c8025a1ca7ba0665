// A channel: a provider and one credential, as calls are sent through it.

import type { Road } from '../http/client/network-path.ts'
import type { Overrides } from './overrides.ts'
import type { OpenedKey } from './signing.ts'
import type { ChannelTimes } from './timeouts.ts'

export interface Channel extends OpenedKey {
  readonly id: string
  readonly providerId: string
  readonly baseUrl: string
  /** How that address is reached; the key goes nowhere else. */
  readonly road: Road
  /** What is sent otherwise than callers ask. */
  readonly overrides?: Overrides
  /** Where they are others than its provider's and its models'. */
  readonly times?: ChannelTimes
}
