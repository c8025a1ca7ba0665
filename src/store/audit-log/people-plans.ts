// The audit plans of operations on people. The audit log has only ids of people, so that the name of a removed person
// is not left in it.

import { textId } from '../../base/ids.ts'
import type { OperationName } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'
import type { EndedAccess } from '../people/people.ts'
import type { SqlRow } from '../tables/columns.ts'
import { auditList } from '../tables/columns.ts'
import { serviceTokenColumns } from '../tables/service-tokens.ts'
import type { AuditDetail, AuditPlan } from './audit-plan.ts'
import { changedFields } from './audit-plan.ts'

const plan = <Name extends OperationName>(_name: Name, definition: AuditPlan<Name>): AuditPlan<Name> => definition

const PERSON = query<SqlRow>('SELECT role, disabled, removed_ms, version FROM person WHERE id = ?1')
const MEMBER = query<SqlRow>('SELECT account_id, rank, version FROM member WHERE account_id = ?1 AND person_id = ?2')
const INVITATION =
  query<SqlRow>(`SELECT kind, role, account_id, rank, expires_ms, accepted_ms, revoked_ms, person_id, version
  FROM invitation WHERE id = ?1`)
const INVITATION_BY_DIGEST = query<SqlRow>(
  `SELECT kind, role, account_id, rank, accepted_ms, person_id FROM invitation WHERE digest = ?1`,
)
const TOKEN = query<SqlRow>(`SELECT ${auditList(serviceTokenColumns)} FROM service_token WHERE id = ?1`)
const SITE = query<SqlRow>("SELECT value, version FROM setting WHERE name = 'site' AND ?1 = 0")

const personText = (id: number): string => textId('usr', id)

/** What ended with the rights of somebody: open invitations and playground keys. */
function endedDetails(result: { readonly done: string } & Partial<EndedAccess>): Readonly<Record<string, AuditDetail>> {
  const { endedInvitations = 0, revokedKeys = [] } = result
  return {
    ...(endedInvitations > 0 && { endedInvitations }),
    // One text: a list of two would look like an old and a new value.
    ...(revokedKeys.length > 0 && { revokedKeys: revokedKeys.map(id => textId('key', id)).join(' ') }),
  }
}

const tokenRow = {
  row: TOKEN,
  key: ({ id }: { readonly id: number }) => id,
  target: ({ id }: { readonly id: number }) => textId('tok', id),
}

export const peoplePlans = {
  setUpOwner: plan('setUpOwner', {
    done: ['set_up'],
    row: PERSON,
    key: input => input.person.id,
    target: input => personText(input.person.id),
  }),
  register: plan('register', {
    done: ['registered'],
    row: PERSON,
    key: input => input.person.id,
    target: input => personText(input.person.id),
    details: ({ account }) => ({ account: textId('acc', account.id), credit: account.credit }),
  }),
  setPerson: plan('setPerson', {
    done: ['set'],
    row: PERSON,
    key: ({ id }) => id,
    target: ({ id }) => personText(id),
    details: (input, result) => ({ ...changedFields(input, ['name', 'email']), ...endedDetails(result) }),
  }),
  removePerson: plan('removePerson', {
    done: ['removed'],
    row: PERSON,
    key: ({ id }) => id,
    target: ({ id }) => personText(id),
    details: (_, result) => endedDetails(result),
  }),
  setProfile: plan('setProfile', {
    done: ['set'],
    row: PERSON,
    key: ({ id }) => id,
    target: ({ id }) => personText(id),
    details: input => changedFields(input, ['name', 'email', 'preferences']),
  }),
  setPassword: plan('setPassword', {
    done: ['set'],
    row: PERSON,
    key: ({ id }) => id,
    target: ({ id }) => personText(id),
  }),
  signIn: plan('signIn', {
    done: ['signed_in'],
    target: ({ personId }) => personText(personId),
    details: ({ session, second }) => ({
      session: textId('ses', session.id),
      second: second === null ? null : 'step' in second ? 'totp' : 'recovery code',
    }),
  }),
  signInOperator: plan('signInOperator', { done: ['signed_in'], target: ({ id }) => textId('ses', id) }),
  endSessions: plan('endSessions', {
    done: ['ended'],
    target: ({ personId }) => personText(personId),
    details: ({ only, why }, result) => ({
      why,
      ...('count' in result && { sessions: result.count }),
      ...(only !== undefined && { session: textId('ses', only) }),
    }),
  }),
  confirmTotp: plan('confirmTotp', { done: ['confirmed'], target: ({ personId }) => personText(personId) }),
  renewRecoveryCodes: plan('renewRecoveryCodes', { done: ['renewed'], target: ({ personId }) => personText(personId) }),
  removeTotp: plan('removeTotp', { done: ['removed'], target: ({ personId }) => personText(personId) }),
  invite: plan('invite', {
    done: ['invited'],
    row: INVITATION,
    key: ({ id }) => id,
    target: ({ id }) => textId('inv', id),
    details: (_, result) => endedDetails(result),
  }),
  inviteToReset: plan('inviteToReset', {
    done: ['invited'],
    row: INVITATION,
    key: ({ id }) => id,
    target: ({ id }) => textId('inv', id),
  }),
  acceptInvitation: plan('acceptInvitation', {
    done: ['accepted'],
    row: INVITATION_BY_DIGEST,
    key: ({ digest }) => Buffer.from(digest, 'hex'),
    target: ({ personId }) => personText(personId),
  }),
  resetPassword: plan('resetPassword', {
    done: ['reset'],
    target: (_, result) => ('personId' in result ? personText(result.personId) : ''),
  }),
  revokeInvitation: plan('revokeInvitation', {
    done: ['revoked'],
    row: INVITATION,
    key: ({ id }) => id,
    target: ({ id }) => textId('inv', id),
  }),
  setMember: plan('setMember', {
    done: ['set'],
    row: MEMBER,
    key: ({ accountId, personId }) => [accountId, personId],
    target: ({ accountId, personId }) => `${textId('acc', accountId)} ${personText(personId)}`,
    details: (_, result) => endedDetails(result),
  }),
  removeMember: plan('removeMember', {
    done: ['removed'],
    row: MEMBER,
    key: ({ accountId, personId }) => [accountId, personId],
    target: ({ accountId, personId }) => `${textId('acc', accountId)} ${personText(personId)}`,
    details: (_, result) => endedDetails(result),
  }),
  createServiceToken: plan('createServiceToken', { done: ['created'], ...tokenRow }),
  setServiceToken: plan('setServiceToken', { done: ['set'], ...tokenRow }),
  rotateServiceToken: plan('rotateServiceToken', { done: ['rotated'], ...tokenRow }),
  revokeServiceToken: plan('revokeServiceToken', {
    done: ['revoked'],
    ...tokenRow,
    details: (_, result) => endedDetails(result),
  }),
  setSite: plan('setSite', { done: ['set'], row: SITE, key: () => 0, target: () => 'site' }),
} as const
