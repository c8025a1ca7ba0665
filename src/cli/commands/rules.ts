// Commands that lay down rules about calls: limits, names for models, channels.

import type { Fields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { Row } from './command.ts'
import { asking } from './command.ts'

const STDIN = '-'

const switches = {
  enable: 'let a channel take calls again',
  disable: 'give a channel no more calls; what lies there can still be asked for',
  delete: 'take a channel away that was laid down here; calls under way end on it',
}

/** From a pipe or a file; nobody is asked to type one. */
const withCredentials = async (input: Fields): Promise<Fields> => ({
  ...input,
  credentials: process.stdin.isTTY ? '' : await Bun.stdin.text(),
})

export const ruleRows: Readonly<Record<string, Row>> = {
  'limits list': asking({
    usage: 'limits list',
    about: 'list the limits on calls',
    command: 'limits-list',
    print: ({ limits }) => listLines(limits, 'no limits but the calls a minute of keys and tiers'),
  }),
  'limits set': asking({
    usage:
      'limits set <requests|tokens> <n>/<minute|day>, or concurrency <n> [--per key,account,model] [--key …] ' +
      "[--account …] [--tier …] [--model 'a/*']",
    about: 'limit the calls that are named, together or each key, account or model by itself; again: another amount',
    command: 'limits-set',
    places: ['resource', 'amount'],
    options: ['per', 'key', 'account', 'tier', 'model'],
  }),
  'limits remove': asking({
    usage: 'limits remove <id>',
    about: 'take a limit away',
    command: 'limits-remove',
    places: ['id'],
  }),
  'routes list': asking({
    usage: 'routes list',
    about: 'list the names that you gave to models',
    command: 'routes-list',
    print: ({ routes }) => listLines(routes, 'no names but those of the models'),
  }),
  'routes set': asking({
    usage: 'routes set <name> <provider/model or name>[=weight] … [then …] [--policy balanced]',
    about:
      'let a name stand for a model or a group; those behind "then" only when none before it can; ' +
      'policies: balanced, weighted, least_busy, fastest, cheapest',
    command: 'routes-set',
    places: ['name', 'members…'],
    options: ['policy'],
  }),
  'routes remove': asking({
    usage: 'routes remove <name>',
    about: 'take a name away',
    command: 'routes-remove',
    places: ['name'],
  }),
  'channels list': asking({
    usage: 'channels list',
    about: 'list the channels: a provider and one credential each',
    command: 'channels-list',
    print: ({ channels }) => listLines(channels, 'no channels'),
  }),
  'channels set': asking({
    usage:
      'channels set <channel> [--weight n] [--priority n] [--rpm n] [--tpm n] [--concurrency n] [--proxy url] ' +
      '[--tags a,b] [--foreign-ids on|off] [--disable|--enable]',
    about:
      'set how much a channel is given and what may be said of it; "none" takes a cap, a proxy or tags away; ' +
      'with --proxy - the address is read from standard input; --foreign-ids on lets every caller name what is kept ' +
      'at the provider, whoever made it',
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
    about: 'lay channels down, one for each line of standard input: no credential is ever an argument',
    command: 'channels-create',
    places: ['provider'],
    options: ['name', 'base-url', 'weight', 'priority', 'rpm', 'tpm', 'concurrency', 'tags', 'foreign-ids'],
    flags: ['disable'],
    prepare: withCredentials,
    print: ({ channels }) => listLines(channels, 'no channels'),
  }),
  'channels credential': asking({
    usage: 'channels credential <channel> < credential',
    about: 'replace the credential of a channel that was laid down here; its name and all that is said of it stay',
    command: 'channels-credential',
    places: ['channel'],
    prepare: withCredentials,
  }),
  'channels test': asking({
    usage: 'channels test <channel> [--model id]',
    about: 'try a channel by a real, tiny call that nobody is billed for',
    command: 'channels-test',
    places: ['channel'],
    options: ['model'],
    isBad: ({ ok }) => ok !== true,
  }),
  'channels models': asking({
    usage: 'channels models <channel>',
    about: 'ask its upstream which models it has, and hold them against those that are known',
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
    about: 'let all that was said of a channel hold for another, for instance when its key was renewed',
    command: 'channels-move',
    places: ['from', 'to'],
  }),
  'channels reset': asking({
    usage: 'channels reset <channel>',
    about: 'forget all that was said of a channel',
    command: 'channels-reset',
    places: ['channel'],
  }),
}
