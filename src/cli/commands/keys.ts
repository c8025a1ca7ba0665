// Commands about API keys.

import { endpointNames } from '../../identity/key-rights.ts'
import { keyStates } from '../../management/services/key-state.ts'
import type { CommandFields } from '../connect.ts'
import {
  findAccount,
  findKey,
  ON_OFF,
  optionally,
  parseEither,
  parseList,
  parseMoment,
  parseNumber,
  parseOverlap,
  parseSwitch,
  requireChange,
  UNKNOWN_ACCOUNT,
  UNKNOWN_KEY,
} from '../input.ts'
import { fieldLines, listLines } from '../print.ts'
import { getPages } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

const settings = [
  'name',
  'tier',
  'qpm',
  'expires',
  'endpoints',
  'addresses',
  'allow',
  'deny',
  'require',
  'strict-cap',
  'bodies',
  'strict',
  'explain',
]

/** Fields of a key whose options have other names. */
const fields = {
  allows: '--allow',
  denies: '--deny',
  requires: '--require',
  strictCap: '--strict-cap',
  keepsBodies: '--bodies',
  explains: '--explain',
  suffix: '--ends',
  overlapSeconds: '--overlap',
}

const values = {
  'endpoints': [...endpointNames, 'none'],
  'strict-cap': ON_OFF,
  'bodies': ON_OFF,
  'strict': ON_OFF,
  'explain': ON_OFF,
}

const settingsOf = (input: CommandFields): CommandFields => ({
  name: input.name,
  tier: input.tier,
  qpm: parseNumber(input.qpm, '--qpm'),
  expires: parseMoment(input.expires, '--expires'),
  endpoints: parseList(input.endpoints),
  addresses: parseList(input.addresses),
  allows: parseList(input.allow),
  denies: parseList(input.deny),
  requires: parseList(input.require),
  strictCap: parseSwitch(input['strict-cap'], '--strict-cap'),
  keepsBodies: parseSwitch(input.bodies, '--bodies'),
  strict: parseSwitch(input.strict, '--strict'),
  explains: parseSwitch(input.explain, '--explain'),
})

export const keyColumns = ['id', 'account', 'name', 'suffix', 'tier', 'state', 'created']

export const keyRows: Readonly<Record<string, CliCommand>> = {
  'keys create': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'keys create [--credit 5] [--account acc_…] [options of keys set]',
    description:
      'create an API key, in a new account or in an existing one; prints the key, which is never shown again',
    options: ['credit', 'account', ...settings],
    values,
    fields,
    connects: () => ({ createsData: true }),
    async ask({ credit, ...input }, send) {
      const account = await optionally(input.account, given => findAccount(send, given))
      return await send('POST', '/api/web/keys', { ...settingsOf(input), account, credit })
    },
    print: ({ key }) => [String(key)],
  }),
  'keys list': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage:
      'keys list [--account acc_…] [--name prefix] [--state active|disabled|expired|revoked] [--tier name] ' +
      '[--ends abcd] [--limit n] [--after cursor]',
    description: 'list API keys, newest first; --ends finds a key by its last four characters',
    options: ['account', 'name', 'state', 'tier', 'ends', 'limit', 'after'],
    values: { state: keyStates },
    fields,
    async ask({ ends, ...query }, send) {
      const account = await optionally(query.account, given => findAccount(send, given))
      return await getPages(send, '/api/web/keys', { ...query, account, suffix: ends })
    },
    print: answer => listLines(answer, 'no keys', keyColumns),
  }),
  'keys show': defineCommand({
    unknown: UNKNOWN_KEY,
    usage: 'keys show <key or key id>',
    description: 'show the settings of a key and what it may use',
    positionals: ['key'],
    ask: async ({ key }, send) => send.get(`/api/web/keys/${await findKey(send, key)}`),
  }),
  'keys set': defineCommand({
    unknown: UNKNOWN_KEY,
    usage:
      'keys set <key or key id> [--name text] [--tier name] [--qpm n] [--expires 2027-01-31|90d|none] ' +
      "[--endpoints chat,…] [--addresses 10.0.0.0/8,…] [--allow 'a/*,b/*'] [--deny 'a/b*'] [--require tag,…] " +
      '[--strict-cap|--bodies|--strict|--explain on|off] [--disable|--enable]',
    description:
      'change the settings of a key: --expires, --endpoints and --addresses say until when, for what and from ' +
      'where it works; --allow and --deny say which models it may use; --require names tags that a channel must ' +
      'have; --strict-cap refuses calls that the balance may not cover instead of cutting their answers; --bodies stores requests and responses; --strict ' +
      'refuses calls that lose something in translation; --explain shows the key which channels a call may use; ' +
      '"none" removes a list, the expiry or the calls per minute',
    positionals: ['key'],
    options: settings,
    values,
    flags: ['disable', 'enable'],
    fields,
    async ask(input, send) {
      const change = { ...settingsOf(input), disabled: parseEither(input, 'disable', 'enable') }
      const body = requireChange(change, [...settings, 'disable', 'enable'])
      return await send('PATCH', `/api/web/keys/${await findKey(send, input.key)}`, body)
    },
  }),
  'keys rotate': defineCommand({
    unknown: UNKNOWN_KEY,
    usage: 'keys rotate <key or key id> [--overlap 24h]',
    description:
      'replace the secret text of a key; the old text works for the time of --overlap, otherwise no longer; prints ' +
      'the new key, which is never shown again',
    positionals: ['key'],
    options: ['overlap'],
    fields,
    async ask({ key, overlap }, send) {
      const body = { overlapSeconds: parseOverlap(overlap) }
      return await send('POST', `/api/web/keys/${await findKey(send, key)}/rotate`, body)
    },
    print: ({ key }) => [String(key)],
  }),
  'keys revoke': defineCommand({
    unknown: UNKNOWN_KEY,
    usage: 'keys revoke <key or key id>',
    description: 'refuse a key from now on, for good',
    positionals: ['key'],
    ask: async ({ key }, send) => send('DELETE', `/api/web/keys/${await findKey(send, key)}`),
    print: () => ['The key is revoked.'],
  }),
  'balance': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'balance <account or key>',
    description: 'show the balance of an account',
    positionals: ['account'],
    ask: async ({ account }, send) => send.get(`/api/web/accounts/${await findAccount(send, account)}`),
    print: ({ id, name, balance, held, available }) =>
      fieldLines({ id, name, balance, held, available: available ?? 'no limit' }),
  }),
}
