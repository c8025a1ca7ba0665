// Machine commands about people: create the first owner, set a new password, and a token for scripts.

import { bounds } from '../../base/bounds.ts'
import type { Refusal } from '../../base/errors.ts'
import { refusal } from '../../base/errors.ts'
import { forOperator } from '../../base/hints.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { parseEmail, passwordProblem } from '../../identity/password-rules.ts'
import { mintToken } from '../../identity/token.ts'
import { actorSubject } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { issueSetUpToken, setUpOwner } from '../services/set-up.ts'
import type { MachineAnswer, MachineCommands, MachineInput } from './command.ts'
import { byOperator } from './command.ts'

export function peopleCommands(parts: ManagementParts): MachineCommands {
  return {
    'token': () => token(parts),
    'setup-token': () => setUp(parts),
    'setup-open': () => setUpOpen(parts),
    'setup-owner': input => createOwner(parts, input),
    'reset-password': input => resetPassword(parts, input),
  }
}

/** The token is for the operator, who may do everything and is not a person who can sign in. */
async function token({ writer, jwtSecret, mintId, dateMs }: ManagementParts): Promise<MachineAnswer> {
  const [id, nowMs, lifeSeconds] = [mintId(), dateMs(), bounds.tokenSecondsMax]
  await writer.run('signInOperator', { id, nowMs, expiresMs: nowMs + lifeSeconds * 1_000 }, byOperator)
  const mint = { subject: actorSubject(0), session: textId('ses', id), version: 0, nowMs, lifeSeconds }
  return { token: await mintToken(jwtSecret, mint), expiresInSeconds: lifeSeconds }
}

/** Throws if there is an owner. A set-up token that was printed stays valid. */
async function setUpOpen({ reader }: ManagementParts): Promise<MachineAnswer> {
  if (await reader.people.hasOwner()) throw hasOwner()
  return {}
}

async function setUp(parts: ManagementParts): Promise<MachineAnswer> {
  await setUpOpen(parts)
  return { setupToken: await issueSetUpToken(parts), expiresInSeconds: bounds.setUpMsMax / 1_000 }
}

const hasOwner = (): Refusal =>
  refusal(
    'state_unfit',
    forOperator('There is an owner already. To set a new password: weir users reset-password <email>'),
  )

async function createOwner(parts: ManagementParts, input: MachineInput): Promise<MachineAnswer> {
  await setUpOpen(parts)
  const email = parseEmail(String(input.email ?? ''))
  if (email === undefined) {
    throw refusal('field_invalid', forOperator('"email" must be an email address such as name@example.com.'), 'email')
  }
  const name = String(input.name ?? email.split('@')[0])
  if (name.length < 1 || name.length > bounds.personNameCharsMax || /\p{Cc}/u.test(name)) {
    const hint = `"name" must have 1 to ${bounds.personNameCharsMax} characters, none of them a control character.`
    throw refusal('field_invalid', forOperator(hint), 'name')
  }
  const owner = { email, name, password: await hashOf(parts, input.password, email) }
  const { done, personId } = await setUpOwner(parts, owner, { token: null, session: null, by: {} })
  if (done === 'owner_exists') throw hasOwner()
  if (done !== 'set_up') throw refusal('name_taken', forOperator('Another person has this email address already.'))
  return { owner: textId('usr', personId), email }
}

async function resetPassword(parts: ManagementParts, input: MachineInput): Promise<MachineAnswer> {
  const person = await parts.reader.people.byId(parseTextId('usr', String(input.user)) ?? -1)
  if (person === undefined)
    throw refusal('resource_unknown', forOperator('There is no person with this id. See: weir users list'))
  const { id, email, totp } = person
  const password = await hashOf(parts, input.password, email)
  await parts.writer.run('setPassword', { id, password, sessionId: null, nowMs: parts.dateMs() }, byOperator)
  if (input.keepsSecondFactor === false && totp !== undefined) {
    await parts.writer.run('removeTotp', { personId: id }, byOperator)
  }
  return { user: textId('usr', id), email, password: 'set' }
}

async function hashOf({ passwords }: ManagementParts, given: unknown, email: string): Promise<string> {
  const problem = passwordProblem(String(given ?? ''), email)
  if (problem !== undefined) throw refusal('password_weak', forOperator(`The password cannot be used. ${problem.text}`))
  return await passwords.hash(new Secret(String(given)))
}
