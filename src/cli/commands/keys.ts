// Commands about API keys.

import { listLines } from '../print.ts'
import type { Row } from './command.ts'
import { asking } from './command.ts'

const settings = [
  ...['name', 'tier', 'qpm', 'expires', 'endpoints', 'addresses', 'allow', 'deny', 'require'],
  ...['clamp', 'bodies', 'strict', 'explain'],
]

export const keyRows: Readonly<Record<string, Row>> = {
  'keys create': asking({
    usage: 'keys create [--credit 5] [--account acc_…] [what keys set takes]',
    about: 'make an API key, with an account of its own or of one that is there; prints the key, once',
    command: 'keys-create',
    options: ['credit', 'account', ...settings],
    print: ({ key }) => [key as string],
  }),
  'keys list': asking({
    usage:
      'keys list [--account acc_…] [--name begins] [--state active|disabled|expired|revoked] [--tier name] ' +
      '[--ends abcd] [--limit n] [--after cursor]',
    about: 'list API keys, newest first; --ends finds one by the last four characters of its text',
    command: 'keys-list',
    options: ['account', 'name', 'state', 'tier', 'ends', 'limit', 'after'],
    print: ({ keys, next }) => listLines(keys, 'no keys', next),
  }),
  'keys show': asking({
    usage: 'keys show <key or key id>',
    about: 'show what a key is set to, and what it may use',
    command: 'keys-show',
    places: ['key'],
  }),
  'keys set': asking({
    usage:
      'keys set <key or key id> [--name text] [--tier name] [--qpm n] [--expires 2027-01-31|90d|none] ' +
      "[--endpoints chat,…] [--addresses 10.0.0.0/8,…] [--allow 'a/*,b/*'] [--deny 'a/b*'] [--require tag,…] " +
      '[--clamp|--bodies|--strict|--explain on|off] [--disable|--enable]',
    about:
      'set what a key may: until when, for what and from where, which models it may use, what a channel must be ' +
      'tagged with; cut calls to what funds cover, keep bodies, refuse calls that would lose something in ' +
      'translation, tell of channels',
    command: 'keys-set',
    places: ['key'],
    options: settings,
    flags: ['disable', 'enable'],
  }),
  'keys rotate': asking({
    usage: 'keys rotate <key or key id> [--overlap 24h]',
    about:
      'give a key another text; the old one works for as long as you say, else not any more; prints the new one, once',
    command: 'keys-rotate',
    places: ['key'],
    options: ['overlap'],
    print: ({ key }) => [key as string],
  }),
  'keys revoke': asking({
    usage: 'keys revoke <key or key id>',
    about: 'refuse the key from now on',
    command: 'keys-revoke',
    places: ['key'],
  }),
}
