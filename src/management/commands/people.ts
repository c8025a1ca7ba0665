// Commands about people: create the first owner, list people, reset passwords, change roles; and a token for scripts.

import { bounds } from '../../base/bounds.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { timeOrNull } from '../../base/time.ts'
import { parseEmail, passwordProblem } from '../../identity/password-rules.ts'
import { mintToken } from '../../identity/token.ts'
import type { SignInRow } from '../../store/people/people-reader.ts'
import type { SiteRole } from '../actor.ts'
import { actorSubject, siteRoles } from '../actor.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import { parseRowLimit, parseSwitch, parseTextOption } from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'
import { issueSetUpToken, setUpOwner } from '../services/set-up.ts'

export function peopleCommands(parts: OperatorParts): OperatorCommands {
  return {
    'token': () => token(parts),
    'setup': () => setUp(parts),
    'setup-open': async () => setUpOpen(parts),
    'setup-owner': input => createOwner(parts, input),
    'users-list': input => listUsers(parts, input),
    'users-reset-password': input => resetPassword(parts, input),
    'users-disable': input => setUser(parts, input, { disabled: true }),
    'users-enable': input => setUser(parts, input, { disabled: false }),
    'users-email': input => setUser(parts, input, { email: emailOf(input.email, 'The new email') }),
    'users-role': input => setUser(parts, input, { role: roleOf(input.role) }),
  }
}

/** The token is for the operator, who may do everything and is not a person who can sign in. */
async function token({ writer, jwtSecret, mintId, dateMs }: OperatorParts): Promise<CommandAnswer> {
  const [id, nowMs, lifeSeconds] = [mintId(), dateMs(), bounds.tokenSecondsMax]
  await writer.run('signInOperator', { id, nowMs, expiresMs: nowMs + lifeSeconds * 1_000 }, byOperator)
  const mint = { subject: actorSubject(0), session: textId('ses', id), version: 0, nowMs, lifeSeconds }
  return { token: await mintToken(jwtSecret, mint), expiresInSeconds: lifeSeconds }
}

/** Throws if there is an owner. A set-up token that was printed stays valid. */
function setUpOpen({ reader }: OperatorParts): CommandAnswer {
  if (reader.people.hasOwner) throw hasOwner()
  return {}
}

async function setUp(parts: OperatorParts): Promise<CommandAnswer> {
  setUpOpen(parts)
  return { setupToken: await issueSetUpToken(parts), expiresInSeconds: bounds.setUpMsMax / 1_000 }
}

const hasOwner = (): OperatorError =>
  new OperatorError('There is an owner already. To set a new password: weir users reset-password <email>')

async function createOwner(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  setUpOpen(parts)
  const email = emailOf(input.email, '--email')
  const name = parseTextOption(input.name, '--name', bounds.personNameCharsMax) ?? email.split('@')[0]!
  const owner = { email, name, password: await hashOf(parts, input.password, email) }
  const { done, personId } = await setUpOwner(parts, owner, { token: null, session: null, by: {} })
  if (done === 'owner_exists') throw hasOwner()
  if (done !== 'set_up') throw new OperatorError('Another person has this email address already.')
  return { owner: textId('usr', personId), email }
}

async function listUsers({ queryWorker }: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const ask = { scope: null, filters: {}, sort: 'created', descending: true, limit: parseRowLimit(input.limit) }
  const { rows } = await queryWorker.query('people', ask)
  const users = rows.map(({ id, email, name, role, ...row }) => ({
    user: textId('usr', id),
    email,
    name,
    role,
    state: row.removed ? 'removed' : row.disabled ? 'disabled' : 'active',
    secondFactor: row.secondFactor ? 'on' : 'off',
    lastSignIn: timeOrNull(row.signedMs),
  }))
  return { users }
}

/** Finds a person by email address or id. */
function userOf({ reader }: OperatorParts, given: unknown): SignInRow {
  const text = String(given ?? '')
  const id = parseTextId('usr', text)
  const person = id === undefined ? reader.people.byEmail(parseEmail(text) ?? '') : reader.people.byId(id)
  if (person !== undefined) return person
  throw new OperatorError('There is no person with this email address or id. See: weir users list')
}

async function resetPassword(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const { id, email, totp } = userOf(parts, input.user)
  const keeps = parseSwitch(input['second-factor'], '--second-factor') ?? true
  const password = await hashOf(parts, input.password, email)
  await parts.writer.run('setPassword', { id, password, sessionId: null, nowMs: parts.dateMs() }, byOperator)
  if (!keeps && totp !== undefined) await parts.writer.run('removeTotp', { personId: id }, byOperator)
  return { user: textId('usr', id), email, password: 'set' }
}

const refusals: Readonly<Record<string, string>> = {
  unknown: 'There is no person with this email address or id any more.',
  email_taken: 'Another person signs in with this email address.',
  last_owner: 'This is the last owner. Make another person an owner first.',
}

async function setUser(
  parts: OperatorParts,
  input: CommandInput,
  change: { readonly role?: SiteRole; readonly disabled?: boolean; readonly email?: string },
): Promise<CommandAnswer> {
  const { id } = userOf(parts, input.user)
  const { done } = await parts.writer.run('setPerson', { actorId: 0, id, ...change, nowMs: parts.dateMs() }, byOperator)
  if (done !== 'set') throw new OperatorError(refusals[done] ?? 'This cannot be done.')
  const { email, role, disabled } = parts.reader.people.byId(id)!
  return { user: textId('usr', id), email, role, state: disabled ? 'disabled' : 'active' }
}

function roleOf(given: unknown): SiteRole {
  const role = siteRoles.find(name => name === given)
  if (role === undefined) throw new OperatorError('The role must be owner, admin, support or member.')
  return role
}

function emailOf(given: unknown, name: string): string {
  const email = parseEmail(String(given ?? ''))
  if (email === undefined) throw new OperatorError(`${name} must be an email address such as name@example.com.`)
  return email
}

async function hashOf({ passwords }: OperatorParts, given: unknown, email: string): Promise<string> {
  const problem = passwordProblem(String(given ?? ''), email)
  if (problem !== undefined) throw new OperatorError(`The password cannot be used. ${problem}`)
  return await passwords.hash(new Secret(String(given)))
}
