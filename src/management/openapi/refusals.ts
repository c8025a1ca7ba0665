// What an operation of the management interface may refuse with, beyond what follows from its row: that a name is
// taken, that things are not so that it can be done. A test tries them, and finds what is missing here.

import type { ErrorCode } from '../../base/errors.ts'

export const refusals: Readonly<Record<string, readonly ErrorCode[]>> = {
  createTier: ['name_taken'],
  deleteTier: ['state_unfit'],
  createProvider: ['name_taken', 'state_unfit'],
  updateProvider: ['state_unfit'],
  postProviderModels: ['state_unfit', 'version_stale'],
  deleteProvider: ['state_unfit'],
  createChannel: ['name_taken', 'state_unfit'],
  updateChannel: ['name_taken', 'state_unfit'],
  deleteChannel: ['state_unfit'],
  postChannelTest: ['state_unfit'],
  postChannelFetchModels: ['state_unfit', 'upstream_unusable'],
  postChannelEnable: ['version_stale'],
  postChannelDisable: ['version_stale'],
  postChannelsBulk: ['resource_unknown', 'version_stale', 'state_unfit'],
  setModelRoute: ['state_unfit'],
}
