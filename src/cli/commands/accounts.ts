// Commands about accounts and about the budgets of accounts and keys.

import type { CommandFields } from '../connect.ts'
import {
  findAccount,
  findKey,
  ON_OFF,
  orNone,
  parseEither,
  parseList,
  parseSwitch,
  requireChange,
  text,
  UNKNOWN_ACCOUNT,
} from '../input.ts'
import { fieldLines, listLines } from '../print.ts'
import { Problem } from '../problem.ts'
import type { Send } from '../send.ts'
import { getPages } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'
import { keyColumns } from './keys.ts'

const settings = ['name', 'credit-limit', 'bodies', 'tier', 'allow', 'deny']
const fields = { allows: '--allow', denies: '--deny', keepsBodies: '--bodies' }

function settingsOf(input: CommandFields): CommandFields {
  const isPostpaid = parseEither(input, 'postpaid', 'prepaid')
  return {
    name: input.name,
    kind: isPostpaid === undefined ? undefined : isPostpaid ? 'postpaid' : 'prepaid',
    creditLimit: input['credit-limit'],
    keepsBodies: parseSwitch(input.bodies, '--bodies'),
    tier: orNone(input.tier),
    allows: parseList(input.allow),
    denies: parseList(input.deny),
  }
}

const columns = ['id', 'name', 'type', 'kind', 'frozen', 'balance', 'held']
const budgetColumns = ['of', 'span', 'cap', 'spent', 'held', 'left', 'ends']

const UNKNOWN_SCOPE = 'Unknown key or account. Use a key (wk-…), or the id of a key (key_…) or of an account (acc_…).'
const UNKNOWN_BUDGET_OWNER = 'There is no such key or account, or it has no such budget.'

const freezing = (frozen: boolean) => ({
  positionals: ['account'],
  ask: async ({ account }: CommandFields, send: Send) =>
    send('PATCH', `/api/web/accounts/${await findAccount(send, account)}`, { frozen }),
})

/** The path of the budgets of a key, or of an account if an account is given. */
async function budgetsPath(send: Send, given: unknown): Promise<string> {
  if (!/^(acc_|key_|wk-)/.test(text(given))) throw new Problem(UNKNOWN_SCOPE)
  const isAccount = text(given).startsWith('acc_')
  return isAccount ? `/api/web/accounts/${text(given)}/budgets` : `/api/web/keys/${await findKey(send, given)}/budgets`
}

/** An account may have very many keys; the newest are shown. */
const KEYS_SHOWN_MAX = 100

const keysOf = async (send: Send, account: string): Promise<readonly CommandFields[]> =>
  (await getPages(send, '/api/web/keys', { account, limit: KEYS_SHOWN_MAX })).data

/** The budgets of a key, or of an account and of its keys. */
async function allBudgets(send: Send, path: string): Promise<readonly CommandFields[]> {
  const owner = path.split('/')[4]!
  const read = async (of: string, at: string): Promise<readonly CommandFields[]> =>
    ((await send.get(at)).data as readonly CommandFields[]).map(budget => ({ of, ...budget }))
  const budgets = [...(await read(owner, path))]
  const keys = owner.startsWith('acc_') ? await keysOf(send, owner) : []
  for (const { id } of keys) budgets.push(...(await read(text(id), `/api/web/keys/${text(id)}/budgets`)))
  return budgets
}

export const accountRows: Readonly<Record<string, CliCommand>> = {
  'accounts list': defineCommand({
    usage: 'accounts list [--name prefix] [--limit n] [--after cursor]',
    description: 'list accounts, newest first',
    options: ['name', 'limit', 'after'],
    ask: (query, send) => getPages(send, '/api/web/accounts', query),
    print: answer => listLines(answer, 'no accounts', columns),
  }),
  'accounts create': defineCommand({
    usage: 'accounts create --name text [--personal] [options of accounts set]',
    description: 'create an account without keys and money; it is a team account unless --personal is set',
    options: settings,
    required: ['name'],
    values: { bodies: ON_OFF },
    flags: ['personal', 'prepaid', 'postpaid'],
    fields,
    ask: (input, send) =>
      send('POST', '/api/web/accounts', { ...settingsOf(input), type: input.personal === true ? 'personal' : 'team' }),
  }),
  'accounts show': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'accounts show <account or key>',
    description: 'show an account with its budgets and its newest keys',
    positionals: ['account'],
    async ask({ account }, send) {
      const id = await findAccount(send, account)
      const shown = await send.get(`/api/web/accounts/${id}`)
      const keys = await keysOf(send, id)
      return { ...shown, keys, budgets: await allBudgets(send, `/api/web/accounts/${id}/budgets`) }
    },
    print: ({ keys, budgets, ...account }) => [
      ...fieldLines(account),
      '',
      ...listLines({ data: keys, next: null }, 'no keys', keyColumns),
      '',
      ...listLines({ data: budgets, next: null }, 'no budgets', budgetColumns),
    ],
  }),
  'accounts set': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage:
      'accounts set <account or key> [--credit-limit usd] [--prepaid|--postpaid] [--bodies on|off] [--name text] ' +
      "[--tier name|none] [--allow 'a/*,b/*'] [--deny 'a/b*']",
    description:
      'change the settings of an account: a prepaid account may go below zero down to its credit limit, a postpaid ' +
      'one without a limit; --tier is the tier of its new keys; --allow and --deny say which models its keys may use; ' +
      '"none" removes a tier or a list',
    positionals: ['account'],
    options: settings,
    values: { bodies: ON_OFF },
    flags: ['prepaid', 'postpaid'],
    fields,
    async ask(input, send) {
      const body = requireChange(settingsOf(input), [...settings, 'prepaid', 'postpaid'])
      return await send('PATCH', `/api/web/accounts/${await findAccount(send, input.account)}`, body)
    },
  }),
  'accounts freeze': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'accounts freeze <account or key>',
    description: 'refuse all calls of an account',
    ...freezing(true),
  }),
  'accounts unfreeze': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'accounts unfreeze <account or key>',
    description: 'serve the calls of a frozen account again',
    ...freezing(false),
  }),
  'budgets set': defineCommand({
    unknown: UNKNOWN_BUDGET_OWNER,
    usage: 'budgets set <key or account id> <total|day|month> <usd|none>',
    description:
      'limit what a key or an account may spend in total, per day or per month (UTC); none removes the limit; a budget ' +
      'of a key limits this key alone, a budget of an account all of its keys',
    positionals: ['scope', 'span', 'amount'],
    values: { span: ['total', 'day', 'month'] },
    fields: { cap: '<usd>' },
    async ask({ scope, span, amount }, send) {
      const path = `${await budgetsPath(send, scope)}/${text(span)}`
      return amount === 'none' ? await send('DELETE', path) : await send('PUT', path, { cap: amount })
    },
    print: answer => (answer.span === undefined ? ['The budget is removed.'] : fieldLines(answer)),
  }),
  'budgets show': defineCommand({
    unknown: UNKNOWN_BUDGET_OWNER,
    usage: 'budgets show <key or account id>',
    description: 'show the budgets of a key, or of an account and its newest keys',
    positionals: ['scope'],
    ask: async ({ scope }, send) => ({ data: await allBudgets(send, await budgetsPath(send, scope)) }),
    print: ({ data }) => listLines({ data, next: null }, 'no budgets', budgetColumns),
  }),
}
