// Turns an OperatorError into a refusal of the web interface, with the same sentence as on the command line.

import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import { NotTold } from '../live-gateway.ts'
import { OperatorError } from '../operator-error.ts'
import { NameTaken, NoChannel, Outdated, Unfit } from '../services/channels.ts'
import { NoRoute } from '../services/model-names.ts'
import { NoProvider } from '../services/providers.ts'

const codes: readonly (readonly [kind: new (message: string) => OperatorError, code: ErrorCode])[] = [
  [NoChannel, 'resource_unknown'],
  [NoProvider, 'resource_unknown'],
  [NoRoute, 'resource_unknown'],
  [NameTaken, 'name_taken'],
  [Outdated, 'version_stale'],
  [Unfit, 'state_unfit'],
  [NotTold, 'upstream_unusable'],
]

export async function refusing<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (fault) {
    if (!(fault instanceof OperatorError)) throw fault
    const code = codes.find(([kind]) => fault instanceof kind)?.[1] ?? 'field_invalid'
    throw new Refusal(code, fault.message, { hint: fault.message })
  }
}
