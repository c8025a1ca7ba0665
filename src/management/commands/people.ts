// People, from the command line: the first owner, whoever forgot their password, and a token for scripts.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import { Secret } from '../../base/secret.ts'
import { parseEmail, passwordProblem } from '../../identity/password-rules.ts'
import { mintToken } from '../../identity/token.ts'
import { subjectOf } from '../actor.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { by, OperatorError } from '../command.ts'
import { textOf } from '../command-input.ts'
import { makeSetUpToken, setUpOwner } from '../set-up.ts'

export function peopleCommands(parts: OperatorParts): Commands {
  return {
    'token': () => token(parts),
    'setup': () => setUp(parts),
    'setup-owner': input => createOwner(parts, input),
  }
}

/** Of the operator, who may do everything here, and not of anybody who can sign in. */
async function token({ writer, jwtSecret, mintId, dateMs }: OperatorParts): Promise<Answer> {
  const [id, nowMs, lifeSeconds] = [mintId(), dateMs(), bounds.tokenSecondsMax]
  await writer.run('signInOperator', { id, nowMs, expiresMs: nowMs + lifeSeconds * 1_000 }, by)
  const mint = { subject: subjectOf(0), session: textId('ses', id), version: 0, nowMs, lifeSeconds }
  return { token: await mintToken(jwtSecret, mint), expiresInSeconds: lifeSeconds }
}

async function setUp(parts: OperatorParts): Promise<Answer> {
  if (parts.reader.people.hasOwner) throw hasOwner()
  return { setupToken: await makeSetUpToken(parts), expiresInSeconds: bounds.setUpMsMax / 1_000 }
}

const hasOwner = (): OperatorError =>
  new OperatorError('There is an owner already. For another password: weir users reset-password <email>.')

async function createOwner(parts: OperatorParts, input: Input): Promise<Answer> {
  if (parts.reader.people.hasOwner) throw hasOwner()
  const email = emailOf(input.email)
  const name = textOf(input.name, '--name', bounds.personNameCharsMax) ?? email.split('@')[0]!
  const owner = { email, name, password: await hashOf(parts, input.password, email) }
  const { done, personId } = await setUpOwner(parts, owner, { token: null, session: null, by: {} })
  if (done === 'owner_exists') throw hasOwner()
  if (done !== 'set_up') throw new OperatorError('Somebody has this address already.')
  return { owner: textId('usr', personId), email }
}

function emailOf(given: unknown): string {
  const email = parseEmail(String(given ?? ''))
  if (email === undefined) throw new OperatorError('Say the address to sign in with: --email name@example.com')
  return email
}

async function hashOf({ passwords }: OperatorParts, given: unknown, email: string): Promise<string> {
  const problem = passwordProblem(String(given ?? ''), email)
  if (problem !== undefined) throw new OperatorError(`This password will not do. ${problem}`)
  return await passwords.hash(new Secret(String(given)))
}
