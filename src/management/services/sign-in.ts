// Signs people in by email address, password and, if they have a second factor, a code. A refused sign-in does not
// reveal what was wrong, and takes the same time whether the person exists or not.

import { rateOf } from '../../base/collections/gcra.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { networkOf, siteOf } from '../../http/address/caller-address.ts'
import type { RefundAttempt } from '../../identity/attempt-limits.ts'
import { AttemptCounter, countAttempt } from '../../identity/attempt-limits.ts'
import { digestOpaqueToken } from '../../identity/opaque-token.ts'
import { parseEmail, passwordProblem } from '../../identity/password-rules.ts'
import { SignInLimits } from '../../identity/sign-in-limits.ts'
import { isTotpCode, openTotp, parseRecoveryCode, totpStepOfCode } from '../../identity/totp.ts'
import type { AuditActor } from '../../store/audit-log/audited-operations.ts'
import type { SecondFactor } from '../../store/people/people.ts'
import type { InvitationRow, SignInRow } from '../../store/people/people-reader.ts'
import { actorSubject } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ClientInfo, Sessions } from '../web/sessions.ts'
import { buildSessions } from '../web/sessions.ts'

export interface Credentials {
  readonly email: string
  readonly password: string
  readonly code?: string | undefined
}

/** How many wrong set-up and invitation tokens may come from one network, and how many wrong codes from one person. */
const TOKEN_GUESSES = rateOf(20, 600_000)
/** How often one network may register, and how often one /48, which may be one customer or many. */
const REGISTRATIONS = rateOf(10, 3_600_000)
const REGISTRATIONS_OF_SITE = rateOf(100, 3_600_000)
/**
 * How often a right password may be sent for one name from one place: comparing it takes a core for some 50 ms, and a session
 * leaves a row in the audit log. Counted for each place, so that nobody elsewhere can keep a person waiting.
 */
const RIGHT_PASSWORDS = rateOf(100, 600_000)
/**
 * How often invitations to one account, or to the site with one address, may be accepted by new people although somebody
 * has the address already.
 */
const TAKEN_ADDRESSES = rateOf(10, 3_600_000)

const failed = (detail: string): Refusal => new Refusal('sign_in_failed', detail)

export interface SignInService {
  readonly sessions: Sessions
  signIn(credentials: Credentials, visit: ClientInfo, by: AuditActor): ReturnType<Sessions['begun']>
  /** Confirms the password of a person who is signed in; throws if it is wrong. */
  confirm(personId: number, password: string, visit: ClientInfo): Promise<SignInRow>
  /**
   * Counts a wrong token; throws if the network has tried too many. It is called after the look-up, which is cheap, so
   * that others behind the same address cannot stop somebody with a right token.
   */
  countWrongToken(visit: ClientInfo): Promise<void>
  /** Counts an attempt of a person to enter a code. The returned function undoes the count. */
  guessCode(personId: number): Promise<RefundAttempt>
  /** Counts a registration. The returned function undoes the count. */
  register(visit: ClientInfo): Promise<RefundAttempt>
  /**
   * Counts an attempt to accept an invitation as a new person, which fails if somebody has the address. A manager who
   * accepts invitations of the own must not learn this of many addresses, and must not have passwords hashed without end.
   * The returned function undoes the count.
   */
  tryJoining(invitation: Pick<InvitationRow, 'email' | 'member'>): Promise<RefundAttempt>
  /** Returns the hash of a password; throws if the password is too weak. */
  hash(password: string, email: string): Promise<string>
}

export function buildSignInService(parts: ManagementParts): SignInService {
  const { reader, writer, passwords, seal, dateMs } = parts
  const sessions = buildSessions(parts)
  const limits = new SignInLimits(parts)
  const guesses = new AttemptCounter('guess', TOKEN_GUESSES, parts)
  const registrations = new AttemptCounter('registration', REGISTRATIONS, parts)
  const registrationsOfSite = new AttemptCounter('registration-site', REGISTRATIONS_OF_SITE, parts)
  const rightPasswords = new AttemptCounter('right-password', RIGHT_PASSWORDS, parts)
  const joinings = new AttemptCounter('joining', TAKEN_ADDRESSES, parts)

  /** Counts an attempt and compares the password. `undo` takes the attempt back. `row`: the person, if there is one. */
  async function tryPassword(name: string, password: string, visit: ClientInfo, row: SignInRow | undefined) {
    const network = networkOf(visit.address)
    const site = siteOf(visit.address)
    const right = { counter: rightPasswords, name: `${name}\n${site ?? network}` }
    await countAttempt([{ ...right, isOnlyChecked: true }]) // before the password is compared, which is what costs
    const isKnown = await reader.people.hasSignedIn(name, network)
    const undo = await limits.countOrRefuse({ name, network, site, isKnown })
    try {
      const isSame = await passwords.matches(new Secret(password), row?.password)
      const isRight = isSame && row?.disabled === false
      if (isRight) await countAttempt([right])
      return { isRight, undo }
    } catch (fault) {
      undo() // the password was not compared, or was right
      throw fault
    }
  }

  function readSecondFactor({ id, totp }: SignInRow, code: string | undefined): SecondFactor | null {
    if (totp === undefined) return null
    if (code === undefined) throw new Refusal('code_needed', 'no code')
    if (isTotpCode(code)) {
      const step = totpStepOfCode(openTotp(seal, id, totp), code, dateMs())
      if (step !== undefined) return { step }
    }
    const recovery = parseRecoveryCode(code)
    if (recovery !== undefined) return { recovery: digestOpaqueToken(recovery) }
    throw failed('the code')
  }

  return {
    sessions,

    async signIn({ email: address, password, code }, visit, by) {
      const email = parseEmail(address) ?? ''
      const row = await reader.people.byEmail(email)
      const { isRight, undo } = await tryPassword(email, password, visit, row)
      if (!isRight || row === undefined) throw failed('the address or the password')
      if (row.totp !== undefined && code === undefined) undo()
      const second = readSecondFactor(row, code)
      const { insert, refresh } = sessions.draft(visit)
      const input = { personId: row.id, ver: row.ver, second, session: insert, nowMs: dateMs() }
      const { done } = await writer.run('signIn', input, { ...by, actor: actorSubject(row.id) })
      if (done !== 'signed_in') throw failed(done)
      undo()
      return sessions.begun({ personId: row.id, sessionId: insert.id, ver: row.ver }, refresh, visit)
    },

    async confirm(personId, password, visit) {
      const row = await reader.people.byId(personId)
      if (row === undefined) throw new Refusal('resource_unknown', 'the operator is no person')
      const { isRight, undo } = await tryPassword(row.email, password, visit, row)
      if (!isRight) throw new Refusal('password_wrong', 'not theirs')
      undo()
      return row
    },

    async countWrongToken(visit) {
      await guesses.countOrRefuse(networkOf(visit.address))
    },
    guessCode: personId => guesses.countOrRefuse(actorSubject(personId)),
    tryJoining: ({ email, member }) =>
      joinings.countOrRefuse(member === null ? email : textId('acc', member.accountId)),
    register({ address }) {
      const site = siteOf(address)
      return countAttempt([
        { counter: registrations, name: networkOf(address) },
        ...(site === undefined ? [] : [{ counter: registrationsOfSite, name: site }]),
      ])
    },

    async hash(password, email) {
      const problem = passwordProblem(password, email)
      if (problem !== undefined) throw refusal('password_weak', problem, 'password')
      return await passwords.hash(new Secret(password))
    },
  }
}
