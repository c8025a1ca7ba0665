// API keys: make, show, set, revoke.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money.ts'
import { digestKey, keySuffix, mintKey } from '../../identity/key-format.ts'
import type { KeyView } from '../../store/books-reader.ts'
import { moneyText } from '../../store/operations.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { by, OperatorError } from '../command.ts'
import { accountOf, keyIdOf, switchOf, textOf, usdOf } from '../command-input.ts'
import { nameWarning, tagWarning } from '../rule-check.ts'
import { patternsOf, tagsOf } from '../rule-input.ts'

export function keyCommands(parts: OperatorParts): Commands {
  return {
    'keys-create': input => createKey(parts, input),
    'keys-show': async input => showKey(parts.books.key(keyIdOf(parts, input.key))!),
    'keys-set': input => setKey(parts, input),
    'keys-revoke': input => revokeKey(parts, input),
    'balance': input => balance(parts, input),
  }
}

async function createKey(parts: OperatorParts, input: Input): Promise<Answer> {
  const tier = typeof input.tier === 'string' ? input.tier : 'standard'
  const credit = usdOf(input.credit ?? '0', '--credit')
  const qpm = input.qpm === undefined ? null : Number(input.qpm)
  if (qpm !== null && !(Number.isSafeInteger(qpm) && qpm > 0 && qpm <= bounds.qpmMax)) {
    throw new OperatorError(`--qpm must be a whole number from 1 to ${bounds.qpmMax}.`)
  }
  const name = (textOf(input.name, '--name') ?? 'unnamed').slice(0, 100)
  const shared = input.account === undefined ? undefined : Number(accountOf(parts, input.account).id)
  const key = mintKey()
  const [id, accountId] = [parts.mintId(), shared ?? parts.mintId()]
  const digest = digestKey(key, parts.pepper.newest).toString('hex')
  const { explains, ...lists } = rightsOf(input)
  const rights = { ...lists, explains: explains ?? false }
  const made = { digest, pepper: parts.pepper.newestMark, suffix: keySuffix(key) }
  const stored = { ...made, name, tier, qpm, credit: moneyText(credit), ...rights }
  const account = { accountId, existing: shared !== undefined, creditRef: parts.mintId() }
  const created = parts.writer.run('createKey', { id, ...account, ...stored }, by)
  if (typeof input.setting === 'string') {
    // Queued in the same turn, so that both are in one commit.
    parts.writer.run('setSetting', { name: input.setting, value: textId('key', id) }).catch(() => {})
  }
  const { done } = await created
  if (done === 'tier_unknown') throw new OperatorError(`There is no tier "${tier}".`)
  if (done === 'account_unknown') throw new OperatorError('A key cannot be of this account.')
  parts.onKeyChanged()
  const told = { key, id: textId('key', id), account: textId('acc', accountId), tier, credit: formatUsd(credit) }
  return { ...told, ...warningOf(parts, input) }
}

async function setKey(parts: OperatorParts, input: Input): Promise<Answer> {
  const id = keyIdOf(parts, input.key)
  const wanted = {
    clamps: switchOf(input.clamp, '--clamp'),
    keepsBodies: switchOf(input.bodies, '--bodies'),
    strict: switchOf(input.strict, '--strict'),
    ...rightsOf(input),
  }
  const told = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined))
  if (Object.keys(told).length === 0) {
    const switches = '--clamp on|off, --bodies on|off, --strict on|off, --explain on|off'
    throw new OperatorError(`Say what to set: ${switches}, --allow, --deny or --require.`)
  }
  await parts.writer.run('setKey', { id, ...told }, by)
  parts.onKeyChanged()
  return { ...showKey(parts.books.key(id)!), ...warningOf(parts, input) }
}

/** What it may use and be told; undefined where nothing was said of it, null for whichever. */
function rightsOf(input: Input) {
  return {
    allows: listText(patternsOf(input.allow, '--allow')),
    denies: listText(patternsOf(input.deny, '--deny')),
    requires: listText(tagsOf(input.require, '--require')),
    explains: switchOf(input.explain, '--explain'),
  }
}

const listText = (list: readonly string[] | null | undefined): string | null | undefined =>
  list && (list.length === 0 ? null : list.join())

function warningOf(parts: OperatorParts, input: Input): Answer {
  const lists = [patternsOf(input.allow, '--allow'), patternsOf(input.deny, '--deny')]
  const strange = [
    nameWarning(lists.flatMap(list => list ?? []), parts),
    tagWarning(tagsOf(input.require, '--require') ?? [], parts),
  ]
  const warnings = strange.flatMap(({ warning }) => warning ?? [])
  return warnings.length === 0 ? {} : { warning: warnings.join(' ') }
}

export function showKey(key: KeyView): Answer {
  return {
    key: textId('key', Number(key.id)),
    name: key.name,
    ends: `…${key.suffix}`,
    tier: key.tier,
    qpm: key.qpm === null ? '-' : Number(key.qpm),
    clamp: onOff(key.clamps),
    bodies: onOff(key.keeps_bodies),
    strict: onOff(key.strict),
    explain: onOff(key.explains),
    allow: key.allows ?? '-',
    deny: key.denies ?? '-',
    require: key.requires ?? '-',
    state: key.revoked_ms === null ? 'active' : 'revoked',
  }
}

export const onOff = (flag: bigint): string => (flag === 1n ? 'on' : 'off')

async function revokeKey(parts: OperatorParts, input: Input): Promise<Answer> {
  const id = keyIdOf(parts, input.key)
  await parts.writer.run('revokeKey', { id }, by)
  parts.onKeyChanged()
  parts.onKeyRevoked(id)
  return { id: textId('key', id), state: 'revoked' }
}

async function balance(parts: OperatorParts, input: Input): Promise<Answer> {
  const id = keyIdOf(parts, input.key)
  const row = parts.reader.balance(id)!
  return {
    id: textId('key', id),
    account: textId('acc', row.accountId),
    name: row.name,
    tier: row.tier,
    state: row.revoked ? 'revoked' : 'active',
    balance: formatUsd(nanos(row.balance)),
    held: formatUsd(nanos(row.held)),
  }
}
