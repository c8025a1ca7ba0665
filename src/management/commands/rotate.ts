// Secrets: replaced by new ones while calls go on, told by their marks, and let go when nothing rests on them any more.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import type { RotationStatus, SecretState } from '../../store/secrets/rotation.ts'
import { secretHomes } from '../../store/secrets/secret-files.ts'
import type { SecretKind } from '../../store/secrets/secret-kinds.ts'
import { secretKinds } from '../../store/secrets/secret-kinds.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { by } from '../command.ts'
import { OperatorError } from '../operator-error.ts'

export function rotateCommands({ rotation }: OperatorParts): Commands {
  return {
    async 'rotate'(input) {
      const kind = kindOf(input.kind)
      if (input.force === true && input.finish !== true) throw new OperatorError('--force goes with --finish.')
      if (input.finish === true) return await finish(rotation, kind, input)
      return input.status === true ? showStatus(await rotation.status(kind)) : await rotate(rotation, kind)
    },
  }
}

type Rotating = OperatorParts['rotation']

function kindOf(given: unknown): SecretKind {
  const kind = secretKinds.find(name => name === given)
  if (kind === undefined) throw new OperatorError(`Say which secret: ${secretKinds.join(', ')}.`)
  return kind
}

const goesOn: Readonly<Record<SecretKind, string>> = {
  pepper: 'Each key is digested anew when it next calls',
  jwt: 'Tokens that were signed before are valid until they end',
  encryption: 'What is kept is sealed anew beside the calls',
}

async function rotate(rotation: Rotating, kind: SecretKind): Promise<Answer> {
  const result = await rotation.rotate(kind, by)
  const { variable } = secretHomes[kind]
  if (result.done === 'from_environment') {
    throw new OperatorError(
      `This secret comes from ${variable}. Put a new one before it, with a comma between (${variable}=new,old), and ` +
        `start Weir again; weir rotate ${kind} --status tells when the old one can go.`,
    )
  }
  if (result.done === 'too_many') {
    const most = `There are ${bounds.secretsMax} of this secret, and no more may be.`
    throw new OperatorError(`${most} Let the old ones go first: weir rotate ${kind} --finish.`)
  }
  return { rotated: kind, mark: result.mark, older: result.older, next: `${goesOn[kind]}; see --status.` }
}

function showStatus({ secrets, keys, underWay, fromEnvironment }: RotationStatus): Answer {
  return {
    from: fromEnvironment ? 'environment' : 'file',
    secrets: secrets.map(({ mark, state, sinceMs, replacedMs, rests }) => ({
      ...{ mark, state, since: timeOf(sinceMs), replaced: timeOf(replacedMs), rests },
    })),
    keys: keys.map(({ id, name, suffix, mark }) => ({ key: textId('key', id), name, ends: `…${suffix}`, mark })),
    ...(underWay && { underWay: 'what is kept is being sealed anew' }),
  }
}

const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

function countsOf(rests: SecretState['rests']): string {
  const counted = Object.entries(rests).filter(([, count]) => count > 0)
  return counted.length === 0 ? '-' : counted.map(([name, count]) => `${name} ${count}`).join(', ')
}

async function finish(rotation: Rotating, kind: SecretKind, input: Input): Promise<Answer> {
  const force = input.force === true
  const { dropped, kept, fromEnvironment } = await rotation.finish(kind, force, by)
  const reasons = kept.map(secret => ({
    mark: secret.mark,
    why: fromEnvironment && countsOf(secret.rests) === '-' ? takeOut(kind) : whyKept(kind, secret),
  }))
  if (dropped.length === 0) {
    const [first] = reasons
    if (first === undefined) throw new OperatorError('There is no old secret to let go.')
    throw new OperatorError(`Nothing was let go. ${first.mark}: ${first.why}`)
  }
  const lost = dropped.filter(({ rests }) => countsOf(rests) !== '-')
  return {
    dropped: dropped.map(({ mark }) => mark),
    ...(lost.length > 0 && { lost: lost.map(({ rests }) => countsOf(rests)) }),
    ...(reasons.length > 0 && { kept: reasons }),
  }
}

const takeOut = (kind: SecretKind): string =>
  `Nothing rests on it: take it out of ${secretHomes[kind].variable} and start Weir again.`

function whyKept(kind: SecretKind, { rests, replacedMs, dropMs }: SecretState): string {
  const counted = countsOf(rests)
  if (counted !== '-') {
    const forced = kind === 'pepper' ? ' They die if you say --finish --force.' : ''
    return `${counted} still rest on it; see --status.${forced}`
  }
  if (replacedMs === null) return 'It is still in use.'
  const soonest = timeOf(replacedMs + bounds.secretReplacedMsMin)
  if (kind !== 'encryption') return `What was made with it may still come: it can go from ${soonest} on.`
  return (
    `Callers may still carry conversations that were compacted with it: it can go from ${timeOf(dropMs)} on, or with ` +
    `--finish --force from ${soonest} on.`
  )
}
