// Commands about limits: set, list, remove. Changes apply from the next call on.

import { textId } from '../../base/ids.ts'
import { checkLimit } from '../../limits/validate.ts'
import type { LimitRow, RuleOperations } from '../../store/rules/rules.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { author, by } from '../command.ts'
import { accountOf, keyIdOf, textOf, wholeNumberOf } from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'
import { limitWarning, rulesNow } from '../services/rule-check.ts'
import { amountOf, patternOf, scopesOf } from '../services/rule-input.ts'

export function limitCommands(parts: OperatorParts): Commands {
  return {
    'limits-list': async () => ({ limits: rulesNow(parts).limits.map(showLimit) }),
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

async function setLimit(parts: OperatorParts, input: Input): Promise<Answer> {
  rulesNow(parts)
  const wanted = readLimit(parts, input)
  try {
    checkLimit(wanted)
  } catch (fault) {
    throw new OperatorError((fault as Error).message)
  }
  const result = await parts.writer.run('setLimit', { ...wanted, author }, by)
  if (!('id' in result)) throw new OperatorError(limitRefusals[result.done])
  parts.rules.renew()
  parts.onKeyChanged()
  const warning = limitWarning(wanted.model, parts)
  return { ...showLimit({ ...wanted, id: result.id }), state: result.done, ...warning }
}

function readLimit(parts: OperatorParts, input: Input): Wanted {
  const keyId = input.key === undefined ? null : keyIdOf(parts, input.key)
  const accountId = input.account === undefined ? null : Number(accountOf(parts, input.account).id)
  const tier = textOf(input.tier, '--tier') ?? null
  return {
    resource: String(input.resource) as LimitRow['resource'],
    ...amountOf(input.amount),
    ...{ keyId, accountId, tier },
    model: input.model === undefined ? null : patternOf(input.model, '--model'),
    per: scopesOf(input.per),
  }
}

async function removeLimit(parts: OperatorParts, input: Input): Promise<Answer> {
  const id = wholeNumberOf(input.id, 'The id of a limit', { max: Number.MAX_SAFE_INTEGER })
  const { done } = await parts.writer.run('removeLimit', { id }, by)
  if (done === 'unknown') throw new OperatorError('Unknown limit. See: weir limits list')
  parts.rules.renew()
  parts.onKeyChanged()
  return { id, state: 'removed' }
}

function showLimit({ id, resource, span, amount, keyId, accountId, tier, model, per }: LimitRow): Answer {
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
