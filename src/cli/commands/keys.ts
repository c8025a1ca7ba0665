// Commands about API keys.

import { listLines } from '../print.ts'
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
  'clamp',
  'bodies',
  'strict',
  'explain',
]

export const keyRows: Readonly<Record<string, CliCommand>> = {
  'keys create': defineCommand({
    usage: 'keys create [--credit 5] [--account acc_…] [options of keys set]',
    description:
      'create an API key, in a new account or in an existing one; prints the key, which is never shown again',
    command: 'keys-create',
    options: ['credit', 'account', ...settings],
    print: ({ key }) => [key as string],
  }),
  'keys list': defineCommand({
    usage:
      'keys list [--account acc_…] [--name prefix] [--state active|disabled|expired|revoked] [--tier name] ' +
      '[--ends abcd] [--limit n] [--after cursor]',
    description: 'list API keys, newest first; --ends finds a key by its last four characters',
    command: 'keys-list',
    options: ['account', 'name', 'state', 'tier', 'ends', 'limit', 'after'],
    print: ({ keys, next }) => listLines(keys, 'no keys', next),
  }),
  'keys show': defineCommand({
    usage: 'keys show <key or key id>',
    description: 'show the settings of a key and what it may use',
    command: 'keys-show',
    positionals: ['key'],
  }),
  'keys set': defineCommand({
    usage:
      'keys set <key or key id> [--name text] [--tier name] [--qpm n] [--expires 2027-01-31|90d|none] ' +
      "[--endpoints chat,…] [--addresses 10.0.0.0/8,…] [--allow 'a/*,b/*'] [--deny 'a/b*'] [--require tag,…] " +
      '[--clamp|--bodies|--strict|--explain on|off] [--disable|--enable]',
    description:
      'change the settings of a key: --expires, --endpoints and --addresses say until when, for what and from ' +
      'where it works; --allow and --deny say which models it may use; --require names tags that a channel must ' +
      'have; --clamp shortens calls to what the balance covers; --bodies stores requests and responses; --strict ' +
      'refuses calls that lose something in translation; --explain shows the key which channels a call may use',
    command: 'keys-set',
    positionals: ['key'],
    options: settings,
    flags: ['disable', 'enable'],
  }),
  'keys rotate': defineCommand({
    usage: 'keys rotate <key or key id> [--overlap 24h]',
    description:
      'replace the secret text of a key; the old text works for the time of --overlap, otherwise no longer; prints ' +
      'the new key, which is never shown again',
    command: 'keys-rotate',
    positionals: ['key'],
    options: ['overlap'],
    print: ({ key }) => [key as string],
  }),
  'keys revoke': defineCommand({
    usage: 'keys revoke <key or key id>',
    description: 'refuse a key from now on, for good',
    command: 'keys-revoke',
    positionals: ['key'],
  }),
}
