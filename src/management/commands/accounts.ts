// Commands about accounts (create, list, show, set, freeze, unfreeze) and about budgets of accounts and keys.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeText } from '../../base/time.ts'
import type { AccountView, BudgetView } from '../../store/ledger/books-reader.ts'
import { periodOf } from '../../store/ledger/budgets.ts'
import type { AccountChange as Change } from '../../store/ledger/funding-operations.ts'
import type { BudgetSpan } from '../../store/ledger/hold-types.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import {
  parseRowLimit,
  parseSwitch,
  parseTextOption,
  parseUsdAmount,
  resolveAccount,
  resolveBudgetOwner,
  unknownTierError,
} from '../command-input.ts'
import type { ManagementParts } from '../management-parts.ts'
import { OperatorError } from '../operator-error.ts'
import { nameWarning } from '../services/rule-check.ts'
import { parseModelPatterns } from '../services/rule-input.ts'
import { onOff, showKey } from './keys.ts'

export function accountCommands(parts: ManagementParts): OperatorCommands {
  return {
    'accounts-list': input => listAccounts(parts, input),
    'accounts-create': input => createAccount(parts, input),
    'accounts-show': async input => showAccount(parts, resolveAccount(parts, input.account)),
    'accounts-set': input => setAccount(parts, input),
    'accounts-freeze': input => change(parts, input, { frozen: true }),
    'accounts-unfreeze': input => change(parts, input, { frozen: false }),
    'budgets-set': input => setBudget(parts, input),
    'budgets-show': async input => ({ budgets: budgetsOf(parts, resolveBudgetOwner(parts, input.scope)) }),
  }
}

const time = (ms: bigint): string => timeText(ms)

function showAccount(parts: OperatorParts, account: AccountView): CommandAnswer {
  const id = Number(account.id)
  const left = account.balance + account.credit_limit - account.held
  const available = account.kind === 'prepaid' ? usdText(left) : 'unlimited'
  const funding = account.kind === 'operator' ? {} : { available, creditLimit: usdText(account.credit_limit) }
  return {
    id: textId('acc', id),
    name: account.name,
    ...(account.kind !== 'operator' && { type: account.type }),
    kind: account.kind,
    state: account.frozen_ms === null ? 'active' : 'frozen',
    ...(account.frozen_ms !== null && { frozenSince: time(account.frozen_ms) }),
    balance: usdText(account.balance),
    held: usdText(account.held),
    ...funding,
    bodies: onOff(account.keeps_bodies === 1n),
    ...(account.kind !== 'operator' && {
      tier: account.tier ?? null,
      allow: account.allows?.split(',') ?? null,
      deny: account.denies?.split(',') ?? null,
    }),
    ...(account.kind !== 'operator' && { created: time(account.created_ms) }),
    keys: parts.books.keysOf(id).map(key => showKey(key, parts.dateMs())),
    budgets: budgetsOf(parts, id),
  }
}

async function setAccount(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  if (input.postpaid === true && input.prepaid === true) {
    throw new OperatorError('Use either --prepaid or --postpaid, not both.')
  }
  const wanted = changeOf(input)
  if (Object.values(wanted).every(value => value === undefined)) {
    const money = '--credit-limit usd, --prepaid, --postpaid'
    throw new OperatorError(`Nothing to change. Options: ${money}, --bodies on|off, --name, --tier, --allow, --deny.`)
  }
  return { ...(await change(parts, input, wanted)), ...rightsWarning(parts, wanted) }
}

const rightsWarning = (parts: OperatorParts, { allows, denies }: Change): CommandAnswer =>
  nameWarning(
    [allows, denies].flatMap(list => list ?? []),
    parts,
  )

/** A field is undefined if its option was not used. */
function changeOf(input: CommandInput): Change {
  const limit =
    input['credit-limit'] === undefined ? undefined : parseUsdAmount(input['credit-limit'], '--credit-limit')
  return {
    name: parseTextOption(input.name, '--name', bounds.keyNameCharsMax),
    kind: input.postpaid === true ? 'postpaid' : input.prepaid === true ? 'prepaid' : undefined,
    creditLimit: limit === undefined ? undefined : moneyText(limit),
    keepsBodies: parseSwitch(input.bodies, '--bodies'),
    tier: input.tier === 'none' ? null : parseTextOption(input.tier, '--tier'),
    allows: parseModelPatterns(input.allow, '--allow'),
    denies: parseModelPatterns(input.deny, '--deny'),
  }
}

async function createAccount(parts: ManagementParts, input: CommandInput): Promise<CommandAnswer> {
  const { name, ...wanted } = changeOf(input)
  if (name === undefined) throw new OperatorError('The name of the account is missing: --name text.')
  const id = parts.mintId()
  const type = input.personal === true ? 'personal' : 'team'
  const { done } = await parts.writer.run('createAccount', { ...wanted, id, name, type }, byOperator)
  if (done === 'tier_unknown') throw await unknownTierError(parts, String(wanted.tier))
  return { ...showAccount(parts, parts.books.account(id)!), ...rightsWarning(parts, wanted) }
}

async function listAccounts(parts: ManagementParts, input: CommandInput): Promise<CommandAnswer> {
  const { rows, next } = await parts.queryWorker.query('accounts', {
    scope: null,
    sort: 'created',
    descending: true,
    limit: parseRowLimit(input.limit),
    after: parseTextOption(input.after, '--after'),
    filters: { name: parseTextOption(input.name, '--name') },
  })
  const accounts = rows.map(({ id, name, type, kind, balance, held, frozenMs }) => ({
    id: textId('acc', id),
    name,
    type,
    kind,
    state: frozenMs === null ? 'active' : 'frozen',
    balance: usdText(BigInt(balance)),
    held: usdText(BigInt(held)),
  }))
  return { accounts, next }
}

async function change(parts: OperatorParts, input: CommandInput, wanted: Change): Promise<CommandAnswer> {
  const { id, kind } = resolveAccount(parts, input.account)
  if (kind === 'operator')
    throw new OperatorError("This is one of the operator's own accounts, which have no settings.")
  const { done } = await parts.writer.run('setAccount', { id: Number(id), ...wanted }, byOperator)
  if (done === 'balance_too_low') {
    throw new OperatorError(
      'The debt and the holds of the account exceed this credit limit. Top the account up, or set a higher credit limit.',
    )
  }
  if (done === 'tier_unknown') throw await unknownTierError(parts, String(wanted.tier))
  if (done !== 'set') throw new OperatorError('Unknown account.')
  parts.onKeyChanged() // cached keys contain fields of their account
  return showAccount(parts, parts.books.account(Number(id))!)
}

const SPANS: readonly string[] = ['total', 'day', 'month'] satisfies readonly BudgetSpan[]

async function setBudget(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const scopeId = resolveBudgetOwner(parts, input.scope)
  const span = String(input.span)
  if (!SPANS.includes(span)) throw new OperatorError('The period of a budget must be total, day or month.')
  const cap = input.amount === 'none' ? null : moneyText(parseUsdAmount(input.amount, 'The budget'))
  const { done } = await parts.writer.run('setBudget', { scopeId, span: span as BudgetSpan, cap }, byOperator)
  if (done === 'scope_unknown') throw new OperatorError("The operator's own accounts have no budgets.")
  return { budgets: budgetsOf(parts, scopeId) }
}

const budgetsOf = (parts: OperatorParts, scopeId: number): readonly CommandAnswer[] =>
  parts.books.budgets(scopeId).map(row => showBudget(parts, row))

/** After the end of a period its spending counts as 0; the next call resets the stored amount. */
function showBudget(parts: OperatorParts, { scope_id: scope, span, cap, held, ...row }: BudgetView): CommandAnswer {
  const spent = periodOf(span, parts.dateMs()) > row.period ? 0n : row.spent
  const id = Number(scope)
  const left = cap - spent - held
  return {
    of: parts.books.key(id) === undefined ? textId('acc', id) : textId('key', id),
    span,
    cap: usdText(cap),
    spent: usdText(spent),
    held: usdText(held),
    left: usdText(left > 0n ? left : 0n),
  }
}
