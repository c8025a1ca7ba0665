// Commands that configure the rules: limits, model names, channels.

import type { Fields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { Row } from './command.ts'
import { asking } from './command.ts'

const STDIN = '-'

const switches = {
  enable: 'use a disabled channel for calls again',
  disable: 'send no more calls to a channel; files and tasks that are kept there can still be read',
  delete: 'delete a channel that was created with weir or the console; its running calls finish',
}

/** Reads the credentials from a pipe or a file. A terminal would show them, so it is not read. */
const withCredentials = async (input: Fields): Promise<Fields> => ({
  ...input,
  credentials: process.stdin.isTTY ? '' : await Bun.stdin.text(),
})

export const ruleRows: Readonly<Record<string, Row>> = {
  'limits list': asking({
    usage: 'limits list',
    about: 'list the limits on calls',
    command: 'limits-list',
    print: ({ limits }) => listLines(limits, 'no limits except the calls per minute of keys and tiers'),
  }),
  'limits set': asking({
    usage:
      'limits set <requests|tokens> <n>/<minute|day>, or concurrency <n> [--per key,account,model] [--key …] ' +
      "[--account …] [--tier …] [--model 'a/*']",
    about:
      'limit calls; --key, --account, --tier and --model say which calls, --per says that each key, account or ' +
      'model has a limit of its own; setting the same limit again changes its amount',
    command: 'limits-set',
    places: ['resource', 'amount'],
    options: ['per', 'key', 'account', 'tier', 'model'],
  }),
  'limits remove': asking({
    usage: 'limits remove <id>',
    about: 'remove a limit',
    command: 'limits-remove',
    places: ['id'],
  }),
  'routes list': asking({
    usage: 'routes list',
    about: 'list the model names that you defined',
    command: 'routes-list',
    print: ({ routes }) => listLines(routes, 'no model names defined'),
  }),
  'routes set': asking({
    usage: 'routes set <name> <provider/model or name>[=weight] … [then …] [--policy balanced]',
    about:
      'define a name for a model or a group of models; models after "then" are used only if none before it can ' +
      'serve the call; ' +
      'policies: balanced, weighted, least_busy, fastest, cheapest',
    command: 'routes-set',
    places: ['name', 'members…'],
    options: ['policy'],
  }),
  'routes remove': asking({
    usage: 'routes remove <name>',
    about: 'remove a model name',
    command: 'routes-remove',
    places: ['name'],
  }),
  'channels list': asking({
    usage: 'channels list',
    about: 'list the channels (a provider and one credential each)',
    command: 'channels-list',
    print: ({ channels }) => listLines(channels, 'no channels'),
  }),
  'channels set': asking({
    usage:
      'channels set <channel> [--weight n] [--priority n] [--rpm n] [--tpm n] [--concurrency n] [--proxy url] ' +
      '[--tags a,b] [--foreign-ids on|off] [--disable|--enable]',
    about:
      'change the settings of a channel; "none" removes a limit, a proxy or tags; --proxy - reads the address ' +
      'from standard input; --foreign-ids on lets every caller use the id of any file or response at the provider, ' +
      'also one that another caller created',
    command: 'channels-set',
    places: ['channel'],
    options: ['weight', 'priority', 'rpm', 'tpm', 'concurrency', 'proxy', 'tags', 'foreign-ids'],
    flags: ['disable', 'enable'],
    prepare: async input => (input.proxy === STDIN ? { ...input, proxy: (await Bun.stdin.text()).trim() } : input),
  }),
  'channels create': asking({
    usage:
      'channels create <provider> [--name text] [--base-url https://…] [--weight n] [--priority n] [--rpm n] ' +
      '[--tpm n] [--concurrency n] [--tags a,b] [--foreign-ids on|off] [--disable] < credentials',
    about: 'create a channel for each credential; reads the credentials from standard input, one per line',
    command: 'channels-create',
    places: ['provider'],
    options: ['name', 'base-url', 'weight', 'priority', 'rpm', 'tpm', 'concurrency', 'tags', 'foreign-ids'],
    flags: ['disable'],
    prepare: withCredentials,
    print: ({ channels }) => listLines(channels, 'no channels'),
  }),
  'channels credential': asking({
    usage: 'channels credential <channel> < credential',
    about:
      'replace the credential of a channel; only for channels created with weir or the console; its name and settings stay',
    command: 'channels-credential',
    places: ['channel'],
    prepare: withCredentials,
  }),
  'channels test': asking({
    usage: 'channels test <channel> [--model id]',
    about: 'test a channel with a real, small call that no account pays for; exit code 1 if it fails',
    command: 'channels-test',
    places: ['channel'],
    options: ['model'],
    isBad: ({ ok }) => ok !== true,
  }),
  'channels models': asking({
    usage: 'channels models <channel>',
    about: 'list the models of the upstream, and whether Weir knows them',
    command: 'channels-models',
    places: ['channel'],
    print: ({ models }) => listLines(models, 'no models'),
  }),
  ...Object.fromEntries(
    (['enable', 'disable', 'delete'] as const).map(verb => [
      `channels ${verb}`,
      asking({
        usage: `channels ${verb} <channel>`,
        about: switches[verb],
        command: `channels-${verb}`,
        places: ['channel'],
      }),
    ]),
  ),
  'channels move': asking({
    usage: 'channels move <channel> <channel>',
    about: 'move the settings of a channel to another channel, for example after its key was renewed',
    command: 'channels-move',
    places: ['from', 'to'],
  }),
  'channels reset': asking({
    usage: 'channels reset <channel>',
    about: 'reset the settings of a channel to the defaults',
    command: 'channels-reset',
    places: ['channel'],
  }),
}
