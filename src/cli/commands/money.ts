// Commands that move money, and commands about codes and statements.

import type { CommandFields } from '../connect.ts'
import { findAccount, parseMoment, parseNumber, text, UNKNOWN_ACCOUNT, UNKNOWN_CALL } from '../input.ts'
import { fieldLines, listLines } from '../print.ts'
import { Problem } from '../problem.ts'
import type { Send } from '../send.ts'
import { getPages } from '../send.ts'
import type { CliCommand, CommandDefinition } from './command.ts'
import { defineCommand } from './command.ts'

/** The endpoint wants a reference, so that a request that is sent twice is booked once. */
const referenceOf = ({ reference }: CommandFields): unknown =>
  reference ?? `cli-${Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('base64url')}`

const posting = (path: string) => ({
  positionals: ['account', 'amount'],
  options: ['reference'],
  fields: { amount: '<usd>' },
  ask: async (input: CommandFields, send: Send) =>
    send('POST', `/api/web/accounts/${await findAccount(send, input.account)}/${path}`, {
      amount: input.amount,
      reference: referenceOf(input),
    }),
})

const topUp: CommandDefinition = {
  unknown: UNKNOWN_ACCOUNT,
  usage: 'top-up <account or key> <usd> [--reference text]',
  description: 'add money that was paid to an account; the same reference is booked only once',
  ...posting('top-ups'),
}

export const moneyRows: Readonly<Record<string, CliCommand>> = {
  'top-up': defineCommand(topUp),
  'topup': defineCommand({
    ...topUp,
    usage: topUp.usage.replace('top-up', 'topup'),
    description: 'the same as top-up',
  }),
  'gift': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'gift <account or key> <usd> [--reference text]',
    description: 'add free credit to an account',
    ...posting('gifts'),
  }),
  'adjust': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'adjust <account or key> <+usd or -usd> [--reference text]',
    description: 'correct a balance; the other side of the booking is revenue',
    ...posting('adjustments'),
  }),
  'refund': defineCommand({
    unknown: UNKNOWN_CALL,
    usage: 'refund <call id> [<usd>] [--reference text]',
    description: 'refund a call, in full or in part; a call can be refunded once',
    positionals: ['call', 'amount?'],
    options: ['reference'],
    fields: { amount: '<usd>' },
    async ask({ call, amount, reference }, send) {
      const { account } = await send.get(`/api/web/records/${callId(call)}`)
      return await send('POST', `/api/web/accounts/${text(account)}/refunds`, { call, amount, reference })
    },
  }),
  'statement': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'statement <account or key> [--limit n] [--after cursor]',
    description: 'list the transfers of an account, newest first',
    positionals: ['account'],
    options: ['limit', 'after'],
    ask: async ({ account, ...query }, send) =>
      getPages(send, `/api/web/accounts/${await findAccount(send, account)}/statement`, query),
    print: answer =>
      listLines(answer, 'no transfers', ['made', 'kind', 'amount', 'balance', 'with', 'ref', 'reference', 'author']),
  }),
  'codes create': defineCommand({
    usage: 'codes create --count 10 --amount 5.00 [--batch name] [--expires 2027-01-31|90d]',
    description: 'create redemption codes; prints the codes, which are never shown again',
    options: ['count', 'amount', 'batch', 'expires'],
    required: ['count', 'amount'],
    ask: ({ count, amount, batch, expires }, send) =>
      send('POST', '/api/web/codes', {
        count: parseNumber(count, '--count'),
        amount,
        batch,
        // A number alone is days, too.
        expires: parseMoment(/^\d{1,5}$/.test(text(expires)) ? `${text(expires)}d` : expires, '--expires') ?? undefined,
      }),
    print: ({ codes }) => codes as string[],
  }),
  'codes redeem': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'codes redeem <code> <account or key>',
    description: 'redeem a code: add its amount to an account',
    positionals: ['code', 'account'],
    ask: async ({ code, account }, send) =>
      send('POST', `/api/web/accounts/${await findAccount(send, account)}/redemptions`, { code }),
  }),
  'codes list': defineCommand({
    usage: 'codes list [<batch>] [--limit n] [--after cursor]',
    description: 'list the batches of codes, or the codes of one batch; the codes themselves are never shown',
    positionals: ['batch?'],
    options: ['limit', 'after'],
    ask: ({ batch, ...query }, send) =>
      batch === undefined
        ? getPages(send, '/api/web/codes/batches', query)
        : getPages(send, '/api/web/codes', { ...query, batch, sort: 'made' }),
    print: (answer, { batch }) => listLines(answer, 'no codes', batch === undefined ? batchColumns : codeColumns),
  }),
  'codes void': defineCommand({
    unknown: 'There is no batch of this name and no code of this id (code_…).',
    usage: 'codes void <batch or code id>',
    description: 'cancel a code, or all codes of a batch, that nobody has redeemed',
    positionals: ['codes'],
    ask: ({ codes }, send) =>
      send(
        'POST',
        '/api/web/codes/voids',
        /^code_[0-9a-z]{11}$/.test(text(codes)) ? { code: codes } : { batch: codes },
      ),
    print: fieldLines,
  }),
}

const batchColumns = ['batch', 'codes', 'redeemed', 'voided', 'worth', 'made', 'expires']
const codeColumns = ['id', 'amount', 'state', 'made', 'expires', 'account']

/** The id of a call, which callers get in the header x-request-id. */
export function callId(given: unknown): string {
  if (/^req_[0-9a-z]{11}$/.test(text(given))) return text(given)
  throw new Problem('Use the id of the call (req_…), which callers get in the header x-request-id.')
}
