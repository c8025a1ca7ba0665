// Commands that configure the rules: limits, model names, channels.

import type { CommandFields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

const STDIN = '-'

const switches = {
  enable: 'use a disabled channel for calls again',
  disable: 'send no more calls to a channel; files and tasks that are kept there can still be read',
  delete: 'delete a channel that was created with weir or the console; its running calls finish',
}

/** Reads the credentials from a pipe or a file. A terminal would show them, so it is not read. */
const withCredentials = async (input: CommandFields): Promise<CommandFields> => ({
  ...input,
  credentials: process.stdin.isTTY ? '' : await Bun.stdin.text(),
})

export const ruleRows: Readonly<Record<string, CliCommand>> = {
  'limits list': defineCommand({
    usage: 'limits list',
    description: 'list the limits on calls',
    command: 'limits-list',
    print: ({ limits }) => listLines(limits, 'no limits except the calls per minute of keys and tiers'),
  }),
  'limits set': defineCommand({
    usage:
      'limits set <requests|tokens> <n>/<minute|day>, or concurrency <n> [--per key,account,model] [--key …] ' +
      "[--account …] [--tier …] [--model 'a/*']",
    description:
      'limit calls; --key, --account, --tier and --model say which calls, --per says that each key, account or ' +
      'model has a limit of its own; setting the same limit again changes its amount',
    command: 'limits-set',
    positionals: ['resource', 'amount'],
    options: ['per', 'key', 'account', 'tier', 'model'],
  }),
  'limits remove': defineCommand({
    usage: 'limits remove <id>',
    description: 'remove a limit',
    command: 'limits-remove',
    positionals: ['id'],
  }),
  'routes list': defineCommand({
    usage: 'routes list',
    description: 'list the model names that you defined',
    command: 'routes-list',
    print: ({ routes }) => listLines(routes, 'no model names defined'),
  }),
  'routes set': defineCommand({
    usage: 'routes set <name> <provider/model or name>[=weight] … [then …] [--policy balanced]',
    description:
      'define a name for a model or a group of models; models after "then" are used only if none before it can ' +
      'serve the call; ' +
      'policies: balanced, weighted, least_busy, fastest, cheapest',
    command: 'routes-set',
    positionals: ['name', 'members…'],
    options: ['policy'],
  }),
  'routes remove': defineCommand({
    usage: 'routes remove <name>',
    description: 'remove a model name',
    command: 'routes-remove',
    positionals: ['name'],
  }),
  'channels list': defineCommand({
    usage: 'channels list',
    description: 'list the channels (a provider and one credential each)',
    command: 'channels-list',
    print: ({ channels }) => listLines(channels, 'no channels'),
  }),
  'channels set': defineCommand({
    usage:
      'channels set <channel> [--weight n] [--priority n] [--rpm n] [--tpm n] [--concurrency n] [--proxy url] ' +
      '[--tags a,b] [--foreign-ids on|off] [--disable|--enable]',
    description:
      'change the settings of a channel; "none" removes a limit, a proxy or tags; --proxy - reads the address ' +
      'from standard input; --foreign-ids on lets every caller use the id of any file or response at the provider, ' +
      'also one that another caller created',
    command: 'channels-set',
    positionals: ['channel'],
    options: ['weight', 'priority', 'rpm', 'tpm', 'concurrency', 'proxy', 'tags', 'foreign-ids'],
    flags: ['disable', 'enable'],
    prepare: async input => (input.proxy === STDIN ? { ...input, proxy: (await Bun.stdin.text()).trim() } : input),
  }),
  'channels create': defineCommand({
    usage:
      'channels create <provider> [--name text] [--base-url https://…] [--weight n] [--priority n] [--rpm n] ' +
      '[--tpm n] [--concurrency n] [--tags a,b] [--foreign-ids on|off] [--disable] < credentials',
    description: 'create a channel for each credential; reads the credentials from standard input, one per line',
    command: 'channels-create',
    positionals: ['provider'],
    options: ['name', 'base-url', 'weight', 'priority', 'rpm', 'tpm', 'concurrency', 'tags', 'foreign-ids'],
    flags: ['disable'],
    prepare: withCredentials,
    print: ({ channels }) => listLines(channels, 'no channels'),
  }),
  'channels credential': defineCommand({
    usage: 'channels credential <channel> < credential',
    description:
      'replace the credential of a channel; only for channels created with weir or the console; its name and settings stay',
    command: 'channels-credential',
    positionals: ['channel'],
    prepare: withCredentials,
  }),
  'channels test': defineCommand({
    usage: 'channels test <channel> [--model id]',
    description: 'test a channel with a real, small call that no account pays for; exit code 1 if it fails',
    command: 'channels-test',
    positionals: ['channel'],
    options: ['model'],
    isFailure: ({ ok }) => ok !== true,
  }),
  'channels models': defineCommand({
    usage: 'channels models <channel>',
    description: 'list the models of the upstream, and whether Weir knows them',
    command: 'channels-models',
    positionals: ['channel'],
    print: ({ models }) => listLines(models, 'no models'),
  }),
  ...Object.fromEntries(
    (['enable', 'disable', 'delete'] as const).map(verb => [
      `channels ${verb}`,
      defineCommand({
        usage: `channels ${verb} <channel>`,
        description: switches[verb],
        command: `channels-${verb}`,
        positionals: ['channel'],
      }),
    ]),
  ),
  'channels move': defineCommand({
    usage: 'channels move <channel> <channel>',
    description: 'move the settings of a channel to another channel, for example after its key was renewed',
    command: 'channels-move',
    positionals: ['from', 'to'],
  }),
  'channels reset': defineCommand({
    usage: 'channels reset <channel>',
    description: 'reset the settings of a channel to the defaults',
    command: 'channels-reset',
    positionals: ['channel'],
  }),
}
