// Commands about redemption codes: create, list, redeem, void.

import { bounds } from '../../base/bounds.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import { formatUsd, nanos, usdText } from '../../base/money/money.ts'
import { DAY_MS, timeOrNull } from '../../base/time.ts'
import { digestCode, parseCode } from '../../identity/code-format.ts'
import { readMoney } from '../../store/ledger/money-text.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import { parsePositiveUsd, parseRowLimit, parseTextOption, parseWholeNumber, resolveAccount } from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'
import { codeState, createCodeBatch } from '../services/codes.ts'

const DAYS_MAX = 3_650

export function codeCommands(parts: OperatorParts): OperatorCommands {
  return {
    'codes-create': input => createCodes(parts, input),
    'codes-redeem': input => redeemCode(parts, input),
    'codes-list': input => listCodes(parts, input),
    'codes-void': input => voidCodes(parts, input),
  }
}

/** Lists the codes of one batch, or all batches. */
async function listCodes(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const [batch, limit] = [parseTextOption(input.batch, 'The batch'), parseRowLimit(input.limit)]
  if (batch === undefined) {
    const { rows } = await parts.queryWorker.query('codeBatches', { after: '', limit })
    const batches = rows.map(({ worth, madeMs, expiresMs, ...row }) => ({
      ...row,
      worth: usdText(worth),
      made: timeOrNull(madeMs),
      expires: timeOrNull(expiresMs),
    }))
    return { batches }
  }
  const ask = { scope: null, filters: { batch }, sort: 'made', descending: false, limit }
  const { rows } = await parts.queryWorker.query('codes', ask)
  const codes = rows.map(row => ({
    code: textId('code', row.id),
    amount: usdText(row.amount),
    state: codeState(row, parts.dateMs()),
    made: timeOrNull(row.madeMs),
    expires: timeOrNull(row.expiresMs),
    account: row.accountId === null ? null : textId('acc', row.accountId),
  }))
  return { codes }
}

async function voidCodes(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const text = parseTextOption(input.codes, 'The batch or code') ?? ''
  const id = parseTextId('code', text)
  const result = await parts.writer.run('voidCodes', id === undefined ? { batch: text } : { id }, byOperator)
  if (result.done === 'voided') return { voided: result.codes }
  if (result.done === 'unknown')
    throw new OperatorError('There is no batch of this name and no code of this id (code_…).')
  throw new OperatorError('The code has been redeemed or voided already.')
}

async function createCodes(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const count = parseWholeNumber(input.count, '--count', { max: bounds.codesPerBatchMax })
  const amount = parsePositiveUsd(input.amount, '--amount')
  const batch = parseTextOption(input.batch, '--batch') ?? textId('batch', parts.mintId())
  const days = input.expires === undefined ? null : parseWholeNumber(input.expires, '--expires', { max: DAYS_MAX })
  const expiresMs = days === null ? null : parts.dateMs() + days * DAY_MS
  const codes = await createCodeBatch(parts, { count, amount, batch, isNew: false, expiresMs }, byOperator)
  const expires = timeOrNull(expiresMs)
  return { batch, amount: formatUsd(amount), expires, codes }
}

const codeRefusals = {
  code_unknown: 'Unknown code.',
  code_used: 'This code has been redeemed already.',
  code_expired: 'This code has expired.',
  code_void: 'This code was voided.',
  account_unknown: 'A code cannot be redeemed to this account.',
} as const

async function redeemCode(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const accountId = Number(resolveAccount(parts, input.account).id)
  const code = parseCode(String(input.code ?? ''))
  if (code === undefined) throw new OperatorError('A code looks like wr-XXXX-XXXX-XXXX-XXXX.')
  const digests = parts.pepper.all.map(pepper => digestCode(code, pepper).toString('hex'))
  const result = await parts.writer.run('redeemCode', { digests, accountId }, byOperator)
  if (result.done !== 'redeemed') throw new OperatorError(codeRefusals[result.done])
  const balance = formatUsd(nanos(parts.books.account(accountId)!.balance))
  return { redeemed: formatUsd(readMoney(result.amount)), account: textId('acc', accountId), balance }
}
