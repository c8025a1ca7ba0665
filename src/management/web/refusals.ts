// Turns an OperatorError into a refusal of the web interface, with the same sentence as on the command line.

import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import { ModelsNotListed } from '../live-gateway.ts'
import { OperatorError } from '../operator-error.ts'
import { ChannelUnknown, NameTaken, StateConflict, VersionOutdated } from '../services/channels.ts'
import { RouteUnknown } from '../services/model-names.ts'
import { ProviderUnknown } from '../services/providers.ts'

const codes: readonly (readonly [kind: new (message: string) => OperatorError, code: ErrorCode])[] = [
  [ChannelUnknown, 'resource_unknown'],
  [ProviderUnknown, 'resource_unknown'],
  [RouteUnknown, 'resource_unknown'],
  [NameTaken, 'name_taken'],
  [VersionOutdated, 'version_stale'],
  [StateConflict, 'state_unfit'],
  [ModelsNotListed, 'upstream_unusable'],
]

export async function withRefusals<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (fault) {
    if (!(fault instanceof OperatorError)) throw fault
    const code = codes.find(([kind]) => fault instanceof kind)?.[1] ?? 'field_invalid'
    throw new Refusal(code, fault.message, { hint: fault.message })
  }
}
