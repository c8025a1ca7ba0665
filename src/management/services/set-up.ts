// The set-up of a new gateway: the person with the one-time token that the start printed, or the operator at the command
// line, creates the owner. After that there is no token and no set-up.

import type { AuditActor } from '../../store/audit-log/audited-operations.ts'
import type { SessionInsert } from '../../store/people/people.ts'
import { createSetUpToken, digestSetUpToken, isStoredToken, SETUP_SETTING } from '../../store/people/set-up-token.ts'
import { actorSubject } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { siteDefaults } from './site-settings.ts'

type SetUpParts = Pick<ManagementParts, 'writer' | 'reader' | 'mintId' | 'dateMs'>

/** Creates a new token; the previous one stops working. */
export async function issueSetUpToken({ writer, dateMs }: SetUpParts): Promise<string> {
  const { token, kept } = createSetUpToken(dateMs())
  await writer.run('setSetting', { name: SETUP_SETTING, value: kept })
  return token
}

/** True if it is the newest token. The transaction that uses the token checks it again. */
export const isSetUpToken = async ({ reader, dateMs }: SetUpParts, token: string): Promise<boolean> =>
  isStoredToken(digestSetUpToken(token), await reader.setting(SETUP_SETTING), dateMs())

export interface NewOwner {
  readonly email: string
  readonly name: string
  /** The hash of the password. */
  readonly password: string
}

/** `token`: the token of the request; null: the operator at the command line. Of two requests at once, one succeeds. */
export async function setUpOwner(
  parts: SetUpParts,
  owner: NewOwner,
  { token, session, by }: { token: string | null; session: SessionInsert | null; by: Omit<AuditActor, 'actor'> },
) {
  const { writer, mintId, dateMs } = parts
  const person = { id: mintId(), ...owner }
  const account = { id: mintId(), tier: siteDefaults.defaultTier, credit: '0', creditRef: mintId() } as const
  const digest = token === null ? null : digestSetUpToken(token)
  const input = { token: digest, person, account, session, nowMs: dateMs() }
  const { done } = await writer.run('setUpOwner', input, { ...by, actor: actorSubject(person.id) })
  return { done, personId: person.id }
}
