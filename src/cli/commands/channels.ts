// Commands about channels.

import type { CommandFields } from '../connect.ts'
import { ON_OFF, orNone, parseEither, parseList, parseNumber, parseSwitch, requireChange, text } from '../input.ts'
import { fieldLines, rowLines } from '../print.ts'
import { Problem } from '../problem.ts'
import { getAll } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

const STDIN = '-'

const settings = ['weight', 'priority', 'rpm', 'tpm', 'concurrency', 'tags', 'foreign-ids']
const fields = { requestsPerMinute: '--rpm', tokensPerMinute: '--tpm', credentials: 'standard input' }
const values = { 'foreign-ids': ON_OFF }

const settingsOf = (input: CommandFields): CommandFields => ({
  weight: parseNumber(input.weight, '--weight'),
  priority: parseNumber(input.priority, '--priority'),
  requestsPerMinute: parseNumber(input.rpm, '--rpm'),
  tokensPerMinute: parseNumber(input.tpm, '--tpm'),
  concurrency: parseNumber(input.concurrency, '--concurrency'),
  tags: input.tags === undefined ? undefined : (parseList(input.tags) ?? []),
  foreignIds: parseSwitch(input['foreign-ids'], '--foreign-ids'),
})

const switches = {
  enable: 'use a disabled channel for calls again',
  disable: 'send no more calls to a channel; files and tasks that are kept there can still be read',
}

/** Reads the credentials from a pipe or a file. A terminal would show them, so it is not read. */
const withCredentials = async (input: CommandFields): Promise<CommandFields> => ({
  ...input,
  credentials: process.stdin.isTTY ? '' : await Bun.stdin.text(),
})

/** One credential from each line. */
const linesOf = (given: unknown): readonly string[] =>
  text(given)
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

const pathOf = (channel: unknown): string => `/api/web/channels/${text(channel)}`

function channelRow(channel: CommandFields): CommandFields {
  const { id, name, baseUrl, state, health, weight, priority, requestsPerMinute, tokensPerMinute } = channel
  const { concurrency, proxy, tags, foreignIds, problem } = channel
  return {
    id,
    name,
    host: typeof baseUrl === 'string' ? new URL(baseUrl).host : null,
    state,
    health: (health as { readonly state: string } | null)?.state ?? null,
    weight,
    priority,
    rpm: requestsPerMinute,
    tpm: tokensPerMinute,
    concurrency,
    proxy: proxy === true ? 'set' : null,
    tags: (tags as readonly string[]).length === 0 ? null : tags,
    foreignIds,
    problem,
  }
}

const channelLines = ({ data }: CommandFields): readonly string[] =>
  rowLines((data as CommandFields[]).map(channelRow), 'no channels')

const showChannel = (answer: CommandFields): readonly string[] => fieldLines(channelRow(answer))

const UNKNOWN =
  'Unknown channel. See: weir channels list. While Weir does not run, this command only sees channels whose keys ' +
  'are in its own environment.'

export const channelRows: Readonly<Record<string, CliCommand>> = {
  'channels list': defineCommand({
    usage: 'channels list',
    description: 'list the channels (a provider and one credential each)',
    ask: (_, send) => getAll(send, '/api/web/channels'),
    print: channelLines,
  }),
  'channels set': defineCommand({
    unknown: UNKNOWN,
    usage:
      'channels set <channel> [--weight n] [--priority n] [--rpm n] [--tpm n] [--concurrency n] [--proxy url] ' +
      '[--tags a,b] [--foreign-ids on|off] [--disable|--enable]',
    description:
      'change the settings of a channel; "none" removes a limit, a proxy or tags; --proxy - reads the address ' +
      'from standard input; --foreign-ids on lets every caller use the id of any file or response at the provider, ' +
      'also one that another caller created',
    positionals: ['channel'],
    options: [...settings, 'proxy'],
    values,
    flags: ['disable', 'enable'],
    fields,
    prepare: async input => (input.proxy === STDIN ? { ...input, proxy: (await Bun.stdin.text()).trim() } : input),
    async ask(input, send) {
      const change = {
        ...settingsOf(input),
        proxy: orNone(input.proxy),
        disabled: parseEither(input, 'disable', 'enable'),
      }
      return await send(
        'PATCH',
        pathOf(input.channel),
        requireChange(change, [...settings, 'proxy', 'disable', 'enable']),
      )
    },
    print: showChannel,
  }),
  'channels create': defineCommand({
    usage:
      'channels create <provider> [--name text] [--base-url https://…] [--weight n] [--priority n] [--rpm n] ' +
      '[--tpm n] [--concurrency n] [--tags a,b] [--foreign-ids on|off] [--disable] < credentials',
    description: 'create a channel for each credential; reads the credentials from standard input, one per line',
    positionals: ['provider'],
    options: ['name', 'base-url', ...settings],
    values,
    flags: ['disable'],
    fields,
    prepare: withCredentials,
    ask: (input, send) =>
      send('POST', '/api/web/channels', {
        provider: input.provider,
        name: input.name,
        baseUrl: input['base-url'],
        credentials: linesOf(input.credentials),
        ...settingsOf(input),
        ...(input.disable === true && { disabled: true }),
      }),
    print: ({ data }) =>
      rowLines(
        (data as CommandFields[]).map(({ id }) => ({ channel: id })),
        'no channels',
      ),
  }),
  'channels credential': defineCommand({
    unknown: UNKNOWN,
    usage: 'channels credential <channel> < credential',
    description:
      'replace the credential of a channel; only for channels created with weir or the console; its name and settings stay',
    positionals: ['channel'],
    prepare: withCredentials,
    async ask({ channel, credentials }, send) {
      const [credential, ...others] = linesOf(credentials)
      if (credential === undefined || others.length > 0) {
        throw new Problem('Send exactly one credential on standard input.')
      }
      return await send('PATCH', pathOf(channel), { credential })
    },
    print: showChannel,
  }),
  'channels test': defineCommand({
    unknown: UNKNOWN,
    usage: 'channels test <channel> [--model id]',
    description: 'test a channel with a real, small call that no account pays for; exit code 1 if it fails',
    positionals: ['channel'],
    options: ['model'],
    ask: ({ channel, model }, send) => send('POST', `${pathOf(channel)}/test`, { model }),
    isFailure: ({ ok }) => ok !== true,
  }),
  'channels models': defineCommand({
    unknown: UNKNOWN,
    usage: 'channels models <channel>',
    description: 'list the models of the upstream, and whether Weir knows them',
    positionals: ['channel'],
    ask: ({ channel }, send) => send('POST', `${pathOf(channel)}/fetch-models`),
    print: modelLines,
  }),
  ...Object.fromEntries(
    (['enable', 'disable'] as const).map(verb => [
      `channels ${verb}`,
      defineCommand({
        unknown: UNKNOWN,
        usage: `channels ${verb} <channel>`,
        description: switches[verb],
        positionals: ['channel'],
        ask: ({ channel }, send) => send('PATCH', pathOf(channel), { disabled: verb === 'disable' }),
        print: showChannel,
      }),
    ]),
  ),
  'channels delete': defineCommand({
    unknown: UNKNOWN,
    usage: 'channels delete <channel>',
    description: 'delete a channel that was created with weir or the console; its running calls finish',
    positionals: ['channel'],
    ask: ({ channel }, send) => send('DELETE', pathOf(channel)),
    print: () => ['The channel is deleted.'],
  }),
  'channels move': defineCommand({
    unknown: UNKNOWN,
    usage: 'channels move <channel> <channel>',
    description: 'move the settings of a channel to another channel, for example after its key was renewed',
    positionals: ['from', 'to'],
    ask: ({ from, to }, send) => send('POST', `${pathOf(from)}/move`, { to }),
    print: showChannel,
  }),
  'channels reset': defineCommand({
    unknown: UNKNOWN,
    usage: 'channels reset <channel>',
    description: 'reset the settings of a channel to the defaults',
    positionals: ['channel'],
    ask: ({ channel }, send) => send('POST', `${pathOf(channel)}/reset`),
    print: () => ['The settings of the channel are reset.'],
  }),
}

function modelLines({ fresh, known, gone, priced }: CommandFields): readonly string[] {
  const row = (state: string) => (model: string) => ({ model, state, priced: (priced as string[]).includes(model) })
  return rowLines(
    [
      ...(known as string[]).map(row('known')),
      ...(fresh as string[]).map(row('new')),
      ...(gone as string[]).map(row('gone')),
    ],
    'no models',
  )
}
