// Errors of management operations that do not follow from their rows, such as a name that is taken or a state that does
// not allow the operation. A test tries the operations and finds errors that are missing here.

import type { ErrorCode } from '../../base/errors.ts'

/** Errors of all operations under /api/auth. */
export const authErrors: readonly ErrorCode[] = ['origin_refused', 'setup_needed', 'tried_too_often']

const ofPassword: readonly ErrorCode[] = ['password_wrong', 'tried_too_often', 'resource_unknown']

const ofPosting: readonly ErrorCode[] = ['field_missing', 'idempotency_key_invalid', 'posted_before', 'state_unfit']

export const operationErrors: Readonly<Record<string, readonly ErrorCode[]>> = {
  createAuthSetup: ['state_unfit', 'setup_refused', 'name_taken', 'password_weak'],
  postAuthSignIn: ['sign_in_failed', 'code_needed'],
  postAuthRefresh: ['session_over'],
  createAuthInvitation: ['invitation_invalid', 'name_taken', 'password_weak'],
  postAuthInvitationLook: ['invitation_invalid'],
  postAuthPassword: ['invitation_invalid', 'password_weak'],
  createAuthRegistration: ['registration_closed', 'name_taken', 'password_weak', 'state_unfit'],

  updateMe: ['resource_unknown', 'name_taken', ...ofPassword],
  postMePassword: [...ofPassword, 'password_weak'],
  createMeSecondFactor: [...ofPassword, 'state_unfit'],
  postMeSecondFactorConfirm: ['field_invalid', 'resource_unknown', 'state_unfit', 'tried_too_often'],
  createMeRecoveryCode: [...ofPassword, 'state_unfit'],
  postMeSecondFactorRemove: [...ofPassword, 'state_unfit'],
  updateUser: ['last_owner'],
  deleteUser: ['last_owner'],
  createUserPasswordReset: ['state_unfit'],
  createAccountMember: ['name_taken'],
  updateAccountMember: ['role_too_low'],
  deleteAccountMember: ['role_too_low'],
  createInvitation: ['role_too_low', 'resource_unknown', 'state_unfit'],
  postInvitationsAccept: ['invitation_invalid'],

  createServiceToken: ['role_too_low', 'resource_unknown', 'state_unfit', 'name_taken'],
  updateServiceToken: ['role_too_low', 'state_unfit', 'name_taken'],
  postServiceTokenRotate: ['role_too_low', 'state_unfit'],
  deleteServiceToken: ['role_too_low'],

  setAccountBudget: ['role_too_low'],
  deleteAccountBudget: ['role_too_low'],
  setKeyBudget: ['state_unfit'],
  deleteKeyBudget: ['state_unfit'],
  createAccountTopUp: ofPosting,
  createAccountGift: ofPosting,
  createAccountAdjustment: ofPosting,
  createAccountRefund: ofPosting,
  createAccountRedemption: ['code_unusable', 'state_unfit', 'tried_too_often'],
  createCode: ['name_taken'],
  postCodesVoids: ['state_unfit', 'resource_unknown'],

  listAuditLog: ['role_too_low'],
  listRecords: ['role_too_low'],
  getLive: ['role_too_low'],
  getRecordsExport: ['role_too_low'],
  getRecordBodies: ['role_too_low'],
  postRecordsDeletions: ['resource_unknown', 'role_too_low', 'state_unfit'],

  createKey: ['name_taken', 'resource_unknown', 'state_unfit', 'field_missing'],
  postKeyExplain: ['explained_too_often', 'state_unfit'],
  postAccountPlaygroundKey: ['state_unfit'],
  getKeyReport: ['state_unfit'],
  getGateway: ['state_unfit'],
  listKeyModels: ['state_unfit'],
  listAccountModels: ['state_unfit'],
  postKeysFind: ['resource_unknown'],
  postKeysBulk: ['resource_unknown'],
  updateKey: ['name_taken', 'state_unfit'],
  postKeyRotate: ['state_unfit'],
  createAccount: ['name_taken'],
  updateAccount: ['state_unfit'],
  createLimit: ['name_taken', 'resource_unknown', 'state_unfit'],
  createTier: ['name_taken'],
  deleteTier: ['state_unfit'],
  createWebhook: ['state_unfit'],
  createAccountWebhook: ['state_unfit'],
  updateWebhook: ['state_unfit'],
  createProvider: ['name_taken', 'state_unfit'],
  updateProvider: ['state_unfit'],
  postProviderModels: ['state_unfit', 'version_stale'],
  deleteProvider: ['state_unfit'],
  createChannel: ['name_taken', 'state_unfit', 'resource_unknown'],
  updateChannel: ['name_taken', 'state_unfit'],
  deleteChannel: ['state_unfit'],
  postChannelMove: ['state_unfit', 'version_stale'],
  postChannelReset: ['state_unfit'],
  postChannelTest: ['state_unfit'],
  postChannelFetchModels: ['state_unfit', 'upstream_unusable'],
  postChannelEnable: ['version_stale'],
  postChannelDisable: ['version_stale'],
  postChannelsBulk: ['resource_unknown', 'version_stale', 'state_unfit'],
}
