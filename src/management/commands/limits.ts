// Commands about limits: set, list, remove. Changes apply from the next call on.

import { textId } from '../../base/ids.ts'
import { checkLimit } from '../../limits/limit-check.ts'
import type { LimitRow, RuleOperations } from '../../store/rules/rules.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator, operatorAuthor } from '../command.ts'
import { parseTextOption, parseWholeNumber, resolveAccount, resolveKeyId } from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'
import { limitWarning, readRules } from '../services/rule-check.ts'
import { parseLimitAmount, parseLimitScopes, parseModelPattern } from '../services/rule-input.ts'

export function limitCommands(parts: OperatorParts): OperatorCommands {
  return {
    'limits-list': async () => ({ limits: readRules(parts).limits.map(showLimit) }),
    'limits-set': input => setLimit(parts, input),
    'limits-remove': input => removeLimit(parts, input),
  }
}

type Wanted = Omit<LimitRow, 'id'>

type Done = RuleOperations['setLimit']['result']['done']

export const limitRefusals: Readonly<Record<Exclude<Done, 'added' | 'changed' | 'exists'>, string>> = {
  too_many: 'There are too many limits. Remove some first, or use one limit with --per key for many keys.',
  key_unknown: 'Unknown key.',
  account_unknown: "Unknown account, or one of the operator's own accounts.",
  tier_unknown: 'Unknown tier.',
  for_nobody: 'The key does not belong to this account or tier, so the limit would apply to no call.',
}

async function setLimit(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  readRules(parts)
  const wanted = readLimit(parts, input)
  try {
    checkLimit(wanted)
  } catch (fault) {
    throw new OperatorError((fault as Error).message)
  }
  const result = await parts.writer.run('setLimit', { ...wanted, author: operatorAuthor }, byOperator)
  if (!('id' in result)) throw new OperatorError(limitRefusals[result.done])
  parts.rules.reload()
  parts.onKeyChanged()
  const warning = limitWarning(wanted.model, parts)
  return { ...showLimit({ ...wanted, id: result.id }), state: result.done, ...warning }
}

function readLimit(parts: OperatorParts, input: CommandInput): Wanted {
  const keyId = input.key === undefined ? null : resolveKeyId(parts, input.key)
  const accountId = input.account === undefined ? null : Number(resolveAccount(parts, input.account).id)
  const tier = parseTextOption(input.tier, '--tier') ?? null
  return {
    resource: String(input.resource) as LimitRow['resource'],
    ...parseLimitAmount(input.amount),
    keyId,
    accountId,
    tier,
    model: input.model === undefined ? null : parseModelPattern(input.model, '--model'),
    per: parseLimitScopes(input.per),
  }
}

async function removeLimit(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const id = parseWholeNumber(input.id, 'The id of a limit', { max: Number.MAX_SAFE_INTEGER })
  const { done } = await parts.writer.run('removeLimit', { id }, byOperator)
  if (done === 'unknown') throw new OperatorError('Unknown limit. See: weir limits list')
  parts.rules.reload()
  parts.onKeyChanged()
  return { id, state: 'removed' }
}

function showLimit({ id, resource, span, amount, keyId, accountId, tier, model, per }: LimitRow): CommandAnswer {
  const calls = [
    ...(keyId === null ? [] : [textId('key', keyId)]),
    ...(accountId === null ? [] : [textId('acc', accountId)]),
    ...(tier === null ? [] : [`tier ${tier}`]),
    ...(model === null ? [] : [`model ${model}`]),
  ]
  return {
    id,
    limit: `${amount} ${resource}${span === null ? '' : `/${span}`}`,
    for: calls.length === 0 ? 'all calls' : calls.join(', '),
    per: per.length === 0 ? 'all of them' : per.join(', '),
  }
}
