// What an operation of the management interface may refuse with, beyond what follows from its row: that a name is
// taken, that things are not so that it can be done. A test tries them, and finds what is missing here.

import type { ErrorCode } from '../../base/errors.ts'

export const refusals: Readonly<Record<string, readonly ErrorCode[]>> = {
  createTier: ['name_taken'],
  deleteTier: ['state_unfit'],
}
