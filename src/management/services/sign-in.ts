// Signing in, by an address, a password and, where somebody has set it up, a code. Whoever is not let in is told
// nothing of what was wrong, in as much time, whether there is such a person or not.

import { rateOf } from '../../base/collections/gcra.ts'
import { Refusal } from '../../base/errors.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { networkOf } from '../../http/address/caller-address.ts'
import { Tries } from '../../identity/attempt-limits.ts'
import { digestOpaque } from '../../identity/opaque-token.ts'
import { parseEmail, passwordProblem } from '../../identity/password-rules.ts'
import { SignInLimits } from '../../identity/sign-in-limits.ts'
import { isTotpCode, openTotp, parseRecoveryCode, stepOfCode } from '../../identity/totp.ts'
import type { By } from '../../store/audit-log/audited.ts'
import type { SecondFactor } from '../../store/people/people.ts'
import type { SignInRow } from '../../store/people/people-reader.ts'
import { subjectOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { Sessions, Visit } from '../web/sessions.ts'
import { buildSessions } from '../web/sessions.ts'

export interface Credentials {
  readonly email: string
  readonly password: string
  readonly code?: string | undefined
}

/** Tokens that can be guessed at: of set-up, of invitations; and how often one address may register. */
const GUESSES = rateOf(20, 600_000)
const NEWCOMERS = rateOf(10, 3_600_000)

const failed = (detail: string): Refusal => new Refusal('sign_in_failed', detail)

interface Tried {
  readonly visit: Visit
  /** Who they say they are, if there is such a person. */
  readonly row: SignInRow | undefined
}

export interface SigningIn {
  readonly sessions: Sessions
  signIn(credentials: Credentials, visit: Visit, by: By): ReturnType<Sessions['begun']>
  /** That whoever is signed in is who they are; refused unless it is their password. */
  confirm(personId: number, password: string, visit: Visit): Promise<SignInRow>
  /** Counts a guess at a token; what it gives back takes it back. */
  guess(visit: Visit): () => void
  /** Counts somebody who registers. */
  register(visit: Visit): () => void
  /** The hash of a password that will do. */
  hash(password: string, email: string): Promise<string>
}

export function buildSigningIn(parts: ManagementParts): SigningIn {
  const { reader, writer, passwords, seal, dateMs } = parts
  const sessions = buildSessions(parts)
  const limits = new SignInLimits(parts.nowMs)
  const guesses = new Tries(GUESSES, parts.nowMs)
  const newcomers = new Tries(NEWCOMERS, parts.nowMs)

  /** Counts a try, and compares. What it gives back takes the try back. */
  async function tryPassword(name: string, password: string, { visit, row }: Tried) {
    const place = networkOf(visit.address)
    const giveBack = limits.enter({ name, place, isKnown: reader.people.hasSignedIn(name, place) })
    try {
      return { isRight: await passwords.matches(new Secret(password), row?.password), giveBack }
    } catch (fault) {
      giveBack() // nobody has looked at it
      throw fault
    }
  }

  function secondOf({ id, totp }: SignInRow, code: string | undefined): SecondFactor | null {
    if (totp === undefined) return null
    if (code === undefined) throw new Refusal('code_needed', 'no code')
    if (isTotpCode(code)) {
      const step = stepOfCode(openTotp(seal, id, totp), code, dateMs())
      if (step !== undefined) return { step }
    }
    const recovery = parseRecoveryCode(code)
    if (recovery !== undefined) return { recovery: digestOpaque(recovery) }
    throw failed('the code')
  }

  return {
    sessions,

    async signIn({ email: given, password, code }, visit, by) {
      const email = parseEmail(given) ?? ''
      const row = reader.people.byEmail(email)
      const { isRight, giveBack } = await tryPassword(email, password, { visit, row })
      if (!isRight || row === undefined || row.disabled) throw failed('the address or the password')
      if (row.totp !== undefined && code === undefined) giveBack()
      const second = secondOf(row, code)
      const { insert, refresh } = sessions.draft(visit)
      const asked = { personId: row.id, ver: row.ver, second, session: insert, nowMs: dateMs() }
      const { done } = await writer.run('signIn', asked, { ...by, actor: subjectOf(row.id) })
      if (done !== 'signed_in') throw failed(done)
      giveBack()
      return sessions.begun({ personId: row.id, sessionId: insert.id, ver: row.ver }, refresh, visit)
    },

    async confirm(personId, password, visit) {
      const row = reader.people.byId(personId)
      if (row === undefined) throw new Refusal('resource_unknown', 'the operator is no person')
      const { isRight, giveBack } = await tryPassword(row.email, password, { visit, row })
      if (!isRight) throw new Refusal('password_wrong', 'not theirs')
      giveBack()
      return row
    },

    guess: visit => guesses.enter(networkOf(visit.address)),
    register: visit => newcomers.enter(networkOf(visit.address)),

    async hash(password, email) {
      const problem = passwordProblem(password, email)
      if (problem !== undefined) throw new Refusal('password_weak', problem, { param: 'password', hint: problem })
      return await passwords.hash(new Secret(password))
    },
  }
}
