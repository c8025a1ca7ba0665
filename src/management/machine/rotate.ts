// The machine command that rotates the gateway's own secrets: replaces them while calls go on, shows what still uses them, and
// removes old ones that nothing uses. Secrets are shown by their marks only.

import { bounds } from '../../base/bounds.ts'
import type { Refusal } from '../../base/errors.ts'
import { refusal } from '../../base/errors.ts'
import { forOperator } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { timeOrNull } from '../../base/time.ts'
import type { RotationStatus, SecretState } from '../../store/secrets/rotation.ts'
import { secretSources } from '../../store/secrets/secret-files.ts'
import type { SecretKind } from '../../store/secrets/secret-kinds.ts'
import { secretKinds } from '../../store/secrets/secret-kinds.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { MachineAnswer, MachineCommand, MachineInput } from './command.ts'
import { byOperator } from './command.ts'

/**
 * Rotations run one after the other, and not while the rules change. The status only reads, perhaps for minutes: meanwhile a
 * gateway must learn what other processes change.
 */
export const rotateCommand =
  ({ rotation, writeQueue }: Pick<ManagementParts, 'rotation' | 'writeQueue'>): MachineCommand =>
  async input => {
    const kind = kindOf(input.kind)
    if (input.force === true && input.finish !== true) throw refused('--force can only be used with --finish.')
    if (input.status === true && input.finish !== true) return showStatus(await rotation.status(kind))
    return await writeQueue(() => (input.finish === true ? finish(rotation, kind, input) : rotate(rotation, kind)))
  }

const refused = (hint: string): Refusal => refusal('state_unfit', forOperator(hint))

type Rotating = ManagementParts['rotation']

function kindOf(given: unknown): SecretKind {
  const kind = secretKinds.find(name => name === given)
  if (kind === undefined) throw refused(`The secret must be one of: ${secretKinds.join(', ')}.`)
  return kind
}

const goesOn: Readonly<Record<SecretKind, string>> = {
  pepper: 'Each key moves to the new secret with its next call',
  jwt: 'Tokens that were signed before stay valid until they expire',
  encryption: 'Stored data is encrypted again in the background',
}

async function rotate(rotation: Rotating, kind: SecretKind): Promise<MachineAnswer> {
  const result = await rotation.rotate(kind, byOperator)
  const { variable } = secretSources[kind]
  if (result.done === 'shared') {
    throw refused(
      `All gateways need the same secrets: start them with ${variable}=old,new, then with ${variable}=new,old, and when ` +
        `weir rotate ${kind} --status shows that nothing uses the old one, with the new one alone.`,
    )
  }
  if (result.done === 'from_environment') {
    throw refused(
      `This secret comes from ${variable}. Put the new one before it, separated by a comma (${variable}=new,old), and ` +
        `start Weir again. weir rotate ${kind} --status shows when the old one can be removed.`,
    )
  }
  if (result.done === 'too_many') {
    const most = `There are already ${bounds.secretsMax} versions of this secret, which is the maximum.`
    throw refused(`${most} Remove old ones first: weir rotate ${kind} --finish`)
  }
  return { rotated: kind, mark: result.mark, older: result.older, next: `${goesOn[kind]}; see --status.` }
}

function showStatus({ secrets, keys, underWay, fromEnvironment }: RotationStatus): MachineAnswer {
  return {
    from: fromEnvironment ? 'environment' : 'file',
    secrets: secrets.map(({ mark, state, sinceMs, replacedMs, rests }) => ({
      mark,
      state,
      since: timeOrNull(sinceMs),
      replaced: timeOrNull(replacedMs),
      rests,
    })),
    keys: keys.map(({ id, name, suffix, mark }) => ({ key: textId('key', id), name, ends: `…${suffix}`, mark })),
    ...(underWay && { underWay: 'stored data is being encrypted again' }),
  }
}

function countsOf(rests: SecretState['rests']): string {
  const counted = Object.entries(rests).filter(([, count]) => count > 0)
  return counted.length === 0 ? '-' : counted.map(([name, count]) => `${name} ${count}`).join(', ')
}

async function finish(rotation: Rotating, kind: SecretKind, input: MachineInput): Promise<MachineAnswer> {
  const force = input.force === true
  const { dropped, kept, fromEnvironment } = await rotation.finish(kind, force, byOperator)
  const reasons = kept.map(secret => ({
    mark: secret.mark,
    why: fromEnvironment && countsOf(secret.rests) === '-' ? takeOut(kind) : whyKept(kind, secret),
  }))
  if (dropped.length === 0) {
    const [first] = reasons
    if (first === undefined) throw refused('There is no old secret to remove.')
    throw refused(`No secret was removed. ${first.mark}: ${first.why}`)
  }
  const lost = dropped.filter(({ rests }) => countsOf(rests) !== '-')
  return {
    dropped: dropped.map(({ mark }) => mark),
    ...(lost.length > 0 && { lost: lost.map(({ rests }) => countsOf(rests)) }),
    ...(reasons.length > 0 && { kept: reasons }),
  }
}

const takeOut = (kind: SecretKind): string =>
  `Nothing uses it: remove it from ${secretSources[kind].variable} and start Weir again.`

function whyKept(kind: SecretKind, { rests, replacedMs, dropMs }: SecretState): string {
  const counted = countsOf(rests)
  if (counted !== '-') {
    const forced = kind === 'pepper' ? ' They stop working with --finish --force.' : ''
    return `${counted} still use it; see --status.${forced}`
  }
  if (replacedMs === null) return 'It is still in use.'
  const soonest = timeOrNull(replacedMs + bounds.secretReplacedMsMin)
  if (kind !== 'encryption')
    return `Callers may still send tokens or keys that were made with it: it can be removed from ${soonest} on.`
  return (
    `Callers may still send conversations that were compacted with it: it can be removed from ${timeOrNull(dropMs)} on, or with ` +
    `--finish --force from ${soonest} on.`
  )
}
