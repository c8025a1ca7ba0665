// Commands about API keys: create, list, show, set, rotate, revoke.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import { InvalidRange, normalizeRange } from '../../http/address/ranges.ts'
import { endpointNames } from '../../identity/key-rights.ts'
import type { KeyView } from '../../store/ledger/books-reader.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { KeyChange } from '../../store/rules/key-operations.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import {
  parseDuration,
  parseMoment,
  parseRowLimit,
  parseSwitch,
  parseTextOption,
  parseUsdAmount,
  resolveAccount,
  resolveKeyId,
  unknownTierError,
} from '../command-input.ts'
import type { ManagementParts } from '../management-parts.ts'
import { OperatorError } from '../operator-error.ts'
import { keyStates, stateFilters, stateOf } from '../services/key-state.ts'
import { changeKey, createApiKey, revokeKey, rotateApiKey } from '../services/keys.ts'
import { nameWarning, tagWarning } from '../services/rule-check.ts'
import { parseModelPatterns, parseTags, splitCommaList } from '../services/rule-input.ts'

export function keyCommands(parts: ManagementParts): OperatorCommands {
  return {
    'keys-create': input => createKey(parts, input),
    'keys-list': input => listKeys(parts, input),
    'keys-show': async input => shownKey(parts, resolveKeyId(parts, input.key)),
    'keys-set': input => setKey(parts, input),
    'keys-rotate': input => rotateKey(parts, input),
    'keys-revoke': input => revoke(parts, input),
    'balance': input => balance(parts, input),
  }
}

const refusals = {
  unknown: 'Unknown key.',
  account_unknown: 'This account cannot have keys.',
  name_taken: 'The account has another key with this name.',
  revoked: 'This key is revoked.',
  too_many: 'The account has too many keys. Revoke some first.',
} as const

async function createKey(parts: ManagementParts, input: CommandInput): Promise<CommandAnswer> {
  const credit = parseUsdAmount(input.credit ?? '0', '--credit')
  const shared = input.account === undefined ? undefined : Number(resolveAccount(parts, input.account).id)
  const [id, accountId] = [parts.mintId(), shared ?? parts.mintId()]
  const { name, tier = null, qpm = null, ...settings } = settingsOf(parts, input)
  const funds = { accountId, existing: shared !== undefined, credit: moneyText(credit), creditRef: parts.mintId() }
  const making = createApiKey(parts, { ...settings, ...funds, id, name, tier, qpm }, byOperator)
  if (typeof input.setting === 'string') {
    // Queued in the same tick, so that one commit writes both.
    parts.writer.run('setSetting', { name: input.setting, value: textId('key', id) }).catch(() => {})
  }
  const { text, result } = await making
  if (result.done !== 'created') throw await refused(parts, result.done, tier)
  const made = { key: text, id: textId('key', id), account: textId('acc', accountId) }
  const { tier: given } = parts.books.key(id)!
  return { ...made, tier: given, credit: formatUsd(credit), ...warningOf(parts, input) }
}

async function refused(parts: OperatorParts, done: string, tier?: string | null): Promise<OperatorError> {
  const why = (refusals as Readonly<Record<string, string>>)[done]
  return why === undefined ? await unknownTierError(parts, String(tier)) : new OperatorError(why)
}

async function setKey(parts: ManagementParts, input: CommandInput): Promise<CommandAnswer> {
  const id = resolveKeyId(parts, input.key)
  if (input.disable === true && input.enable === true)
    throw new OperatorError('Use either --disable or --enable, not both.')
  const isSwitched = input.disable === true || input.enable === true
  const wanted = { ...settingsOf(parts, input), ...(isSwitched && { disabled: input.disable === true }) }
  if (Object.values(wanted).every(value => value === undefined)) {
    const switches = '--clamp on|off, --bodies on|off, --strict on|off, --explain on|off'
    const lists = '--allow, --deny, --require, --endpoints, --addresses'
    throw new OperatorError(
      `Nothing to change. Options: ${switches}, ${lists}, --name, --tier, --qpm, --expires, --disable, --enable.`,
    )
  }
  const { done } = await changeKey(parts, { id, scope: null, by: byOperator }, wanted)
  if (done !== 'set') throw await refused(parts, done, wanted.tier)
  return { ...shownKey(parts, id), ...warningOf(parts, input) }
}

async function rotateKey(parts: ManagementParts, input: CommandInput): Promise<CommandAnswer> {
  const id = resolveKeyId(parts, input.key)
  const overlapMs = parseDuration(input.overlap ?? '0', '--overlap', bounds.keyOverlapMsMax)
  const { text, result } = await rotateApiKey(parts, { id, scope: null, by: byOperator }, overlapMs)
  if (result.done !== 'rotated') throw await refused(parts, result.done)
  return { ...shownKey(parts, id), id: textId('key', id), key: text }
}

async function listKeys(parts: ManagementParts, input: CommandInput): Promise<CommandAnswer> {
  const nowMs = parts.dateMs()
  const state = keyStates.find(one => one === input.state)
  if (input.state !== undefined && state === undefined) {
    throw new OperatorError(`--state must be one of ${keyStates.join(', ')}.`)
  }
  const { rows, next } = await parts.queryWorker.query('keys', {
    scope: null,
    sort: 'created',
    descending: true,
    limit: parseRowLimit(input.limit),
    after: parseTextOption(input.after, '--after'),
    filters: {
      ...(input.account !== undefined && { account: Number(resolveAccount(parts, input.account).id) }),
      name: parseTextOption(input.name, '--name'),
      tier: parseTextOption(input.tier, '--tier'),
      suffix: parseTextOption(input.ends, '--ends'),
      ...stateFilters(state, nowMs),
    },
  })
  const keys = rows.map(({ id, accountId, name, suffix, tier, ...dates }) => ({
    key: textId('key', id),
    account: textId('acc', accountId),
    name,
    ends: `…${suffix}`,
    tier,
    state: stateOf(dates, nowMs),
    created: timeText(dates.createdMs),
  }))
  return { keys, next }
}

/** The settings of a key. Undefined: the option was not used. Null: no restriction. */
function settingsOf(parts: ManagementParts, input: CommandInput): KeyChange {
  const name = parseTextOption(input.name, '--name')?.slice(0, bounds.keyNameCharsMax)
  return {
    ...(name !== undefined && { name }),
    tier: parseTextOption(input.tier, '--tier'),
    qpm: qpmOf(input.qpm),
    expiresMs: parseMoment(input.expires, '--expires', parts.dateMs()),
    clamps: parseSwitch(input.clamp, '--clamp'),
    keepsBodies: parseSwitch(input.bodies, '--bodies'),
    strict: parseSwitch(input.strict, '--strict'),
    explains: parseSwitch(input.explain, '--explain'),
    allows: parseModelPatterns(input.allow, '--allow'),
    denies: parseModelPatterns(input.deny, '--deny'),
    requires: parseTags(input.require, '--require'),
    endpoints: endpointsOf(input.endpoints),
    addresses: addressesOf(input.addresses),
  }
}

function qpmOf(given: unknown): number | null | undefined {
  if (given === undefined || given === 'none') return given === undefined ? undefined : null
  const qpm = Number(given)
  if (Number.isSafeInteger(qpm) && qpm > 0 && qpm <= bounds.qpmMax) return qpm
  throw new OperatorError(`--qpm must be a whole number from 1 to ${bounds.qpmMax}, or none.`)
}

function endpointsOf(given: unknown): readonly string[] | undefined {
  if (given === undefined) return undefined
  const wanted = given === 'none' ? [] : [...new Set(splitCommaList(given))]
  if (wanted.every(name => (endpointNames as readonly string[]).includes(name))) return wanted
  throw new OperatorError(
    `--endpoints must be none, or a list of these, separated by commas: ${endpointNames.join(', ')}.`,
  )
}

function addressesOf(given: unknown): readonly string[] | undefined {
  if (given === undefined) return undefined
  try {
    const ranges = given === 'none' ? [] : [...new Set(splitCommaList(given).map(normalizeRange))]
    if (ranges.length <= bounds.keyAddressesMax) return ranges
    throw new InvalidRange(`At most ${bounds.keyAddressesMax} addresses are allowed.`)
  } catch (fault) {
    if (!(fault instanceof InvalidRange)) throw fault
    throw new OperatorError(`--addresses: ${fault.message}`)
  }
}

function warningOf(parts: ManagementParts, input: CommandInput): CommandAnswer {
  const lists = [parseModelPatterns(input.allow, '--allow'), parseModelPatterns(input.deny, '--deny')]
  const strange = [
    nameWarning(
      lists.flatMap(list => list ?? []),
      parts,
    ),
    tagWarning(parseTags(input.require, '--require') ?? [], parts),
  ]
  const warnings = strange.flatMap(({ warning }) => warning ?? [])
  return warnings.length === 0 ? {} : { warning: warnings.join(' ') }
}

const shownKey = (parts: ManagementParts, id: number): CommandAnswer => showKey(parts.books.key(id)!, parts.dateMs())

export function showKey(key: KeyView, nowMs: number): CommandAnswer {
  const { expiresMs, oldUntilMs } = key
  return {
    key: textId('key', key.id),
    account: textId('acc', key.accountId),
    name: key.name,
    ends: `…${key.suffix}`,
    tier: key.tier,
    qpm: key.qpm,
    clamp: onOff(key.clamps),
    bodies: onOff(key.keepsBodies),
    strict: onOff(key.strict),
    explain: onOff(key.explains),
    allow: key.allows,
    deny: key.denies,
    require: key.requires,
    endpoints: key.endpoints,
    addresses: key.addresses,
    expires: timeOrNull(expiresMs),
    oldTextUntil: oldUntilMs !== null && oldUntilMs > nowMs ? timeText(oldUntilMs) : null,
    state: stateOf(key, nowMs),
  }
}

export const onOff = (flag: boolean): string => (flag ? 'on' : 'off')

async function revoke(parts: ManagementParts, input: CommandInput): Promise<CommandAnswer> {
  const id = resolveKeyId(parts, input.key)
  await revokeKey(parts, { id, scope: null, by: byOperator })
  return { id: textId('key', id), state: 'revoked' }
}

async function balance(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const id = resolveKeyId(parts, input.key)
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
