// Commands about service tokens, the credentials of programs for the management interface.

import { accountRoles, siteRoles } from '../../management/actor.ts'
import {
  findAccount,
  findServiceToken,
  optionally,
  parseMoment,
  parseOverlap,
  requireChange,
  UNKNOWN_TOKEN,
} from '../input.ts'
import { listLines } from '../print.ts'
import { UsageProblem } from '../problem.ts'
import { getPages } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

const columns = ['id', 'name', 'suffix', 'role', 'account', 'accountRole', 'state', 'creator', 'expires', 'lastUsed']
const tokenRoles = siteRoles.slice(1)
const RIGHTS = `Give --role ${tokenRoles.join('|')}, or --account with --account-role ${accountRoles.join('|')}.`
const fields = { overlapSeconds: '--overlap' }

export const tokenRows: Readonly<Record<string, CliCommand>> = {
  'tokens create': defineCommand({
    usage:
      'tokens create <name> [--role support|admin|owner] [--account acc_… --account-role viewer|developer|manager] ' +
      '[--expires 2027-01-31|90d]',
    description:
      'create a service token, with which a program can use /api/web/*: either with a --role for the site, or with an ' +
      '--account-role in one --account; prints the token, which is never shown again',
    positionals: ['name'],
    options: ['role', 'account', 'account-role', 'expires'],
    values: { 'role': tokenRoles, 'account-role': accountRoles },
    async ask({ name, role, expires, ...input }, send) {
      const isOfAccount = input.account !== undefined && input['account-role'] !== undefined
      const isOfSite = input.account === undefined && input['account-role'] === undefined
      if (role === undefined ? !isOfAccount : !isOfSite) throw new UsageProblem(RIGHTS)
      const account = await optionally(input.account, given => findAccount(send, given))
      const rights = { role, account, accountRole: input['account-role'] }
      const token = { name, ...rights, expires: parseMoment(expires, '--expires') }
      return await send('POST', '/api/web/service-tokens', token)
    },
    print: ({ token }) => [String(token)],
  }),
  'tokens list': defineCommand({
    usage:
      'tokens list [--account acc_…] [--name prefix] [--state active|expired|revoked] [--creator usr_…] [--limit n] ' +
      '[--after cursor]',
    description: 'list service tokens, newest first; --creator lists those that one person has created',
    options: ['account', 'name', 'state', 'creator', 'limit', 'after'],
    values: { state: ['active', 'expired', 'revoked'] },
    async ask(query, send) {
      const account = await optionally(query.account, given => findAccount(send, given))
      return await getPages(send, '/api/web/service-tokens', { ...query, account })
    },
    print: answer => listLines(answer, 'no service tokens', columns),
  }),
  'tokens set': defineCommand({
    unknown: UNKNOWN_TOKEN,
    usage: 'tokens set <name or tok_…> [--name text] [--expires 2027-01-31|90d|none]',
    description: 'change the name or the expiry of a service token',
    positionals: ['token'],
    options: ['name', 'expires'],
    async ask({ token, name, expires }, send) {
      const body = requireChange({ name, expires: parseMoment(expires, '--expires') }, ['name', 'expires'])
      return await send('PATCH', `/api/web/service-tokens/${await findServiceToken(send, token)}`, body)
    },
  }),
  'tokens rotate': defineCommand({
    unknown: UNKNOWN_TOKEN,
    usage: 'tokens rotate <name or tok_…> [--overlap 5m]',
    description:
      'replace the text of a service token; the old text works for the time of --overlap, otherwise for five minutes; ' +
      'prints the new token, which is never shown again',
    positionals: ['token'],
    options: ['overlap'],
    fields,
    async ask({ token, overlap }, send) {
      const body = { overlapSeconds: parseOverlap(overlap) }
      return await send('POST', `/api/web/service-tokens/${await findServiceToken(send, token)}/rotate`, body)
    },
    print: ({ token }) => [String(token)],
  }),
  'tokens revoke': defineCommand({
    unknown: UNKNOWN_TOKEN,
    usage: 'tokens revoke <name or tok_…>',
    description: 'refuse a service token from now on, for good',
    positionals: ['token'],
    ask: async ({ token }, send) => send('DELETE', `/api/web/service-tokens/${await findServiceToken(send, token)}`),
    print: () => ['The service token is revoked.'],
  }),
}
