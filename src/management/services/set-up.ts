// The first run: whoever has the one-time token that the start printed, or the command line, becomes the owner. After
// that there is no token, and nothing to set up.

import type { By } from '../../store/audit-log/audited.ts'
import type { SessionInsert } from '../../store/people/people.ts'
import { digestSetUpToken, isKeptToken, mintSetUpToken, SETUP_SETTING } from '../../store/people/set-up-token.ts'
import { subjectOf } from '../actor.ts'
import type { OperatorParts } from '../command.ts'
import { siteDefaults } from './site-settings.ts'

type SetUpParts = Pick<OperatorParts, 'writer' | 'reader' | 'mintId' | 'dateMs'>

/** A fresh one; the one before it is void. */
export async function makeSetUpToken({ writer, dateMs }: SetUpParts): Promise<string> {
  const { token, kept } = mintSetUpToken(dateMs())
  await writer.run('setSetting', { name: SETUP_SETTING, value: kept })
  return token
}

/** Whether it is the one that was made last. It is looked at again when it is used. */
export const isSetUpToken = ({ reader, dateMs }: SetUpParts, token: string): boolean =>
  isKeptToken(digestSetUpToken(token), reader.setting(SETUP_SETTING), dateMs())

export interface NewOwner {
  readonly email: string
  readonly name: string
  /** Its hash. */
  readonly password: string
}

/** `token` is what they showed; null: the operator says so. Of two at once, one becomes it. */
export async function setUpOwner(
  parts: SetUpParts,
  owner: NewOwner,
  { token, session, by }: { token: string | null; session: SessionInsert | null; by: Omit<By, 'actor'> },
) {
  const { writer, mintId, dateMs } = parts
  const person = { id: mintId(), ...owner }
  const account = { id: mintId(), tier: siteDefaults.defaultTier, credit: '0', creditRef: mintId() } as const
  const digest = token === null ? null : digestSetUpToken(token)
  const asked = { token: digest, person, account, session, nowMs: dateMs() }
  const { done } = await writer.run('setUpOwner', asked, { ...by, actor: subjectOf(person.id) })
  return { done, personId: person.id }
}
