// Commands about channels: list, create, change, test. Changes apply from the next call on.

import { bounds } from '../../base/bounds.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { ChannelRow, StoredChannel } from '../../store/rules/rules.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { author, by } from '../command.ts'
import { textOf } from '../command-input.ts'
import type { Running } from '../live-gateway.ts'
import { OperatorError } from '../operator-error.ts'
import type { ChangedChannel, ChannelRule } from '../services/channels.ts'
import { changeChannels, createChannels, removeChannels } from '../services/channels.ts'
import { compareModels } from '../services/providers.ts'
import { rulesNow } from '../services/rule-check.ts'
import { capOf, countOf, proxyOf, switchOf, tagsOf } from '../services/rule-input.ts'

export function channelCommands(parts: OperatorParts): Commands {
  return {
    'channels-list': async () => listChannels(parts),
    'channels-create': input => create(parts, input),
    'channels-set': input => setChannel(parts, input),
    'channels-credential': input => setCredential(parts, input),
    'channels-enable': input => switchOne(parts, input, false),
    'channels-disable': input => switchOne(parts, input, true),
    'channels-delete': input => remove(parts, input),
    'channels-move': input => moveRules(parts, input),
    'channels-reset': input => resetChannel(parts, input),
  }
}

/** Commands that wait for an upstream. They change no rules, so they are not queued with the other commands. */
export function channelAskCommands(parts: OperatorParts): Commands {
  return {
    'channels-test': async input => {
      const { sent, received, timings, ...trial } = await runningOf(parts).tryChannel(
        idOf(parts, input.channel),
        textOf(input.model, '--model'),
      )
      return { ...trial, ...timings, sent, received }
    },
    'channels-models': input => listModels(parts, input),
  }
}

function runningOf({ running }: OperatorParts): Running {
  const now = running()
  if (now === undefined) throw new OperatorError('This command needs a running gateway. Start it: weir serve')
  return now
}

/** Lists the usable channels, then unusable ones and settings of channels whose keys are gone. */
function listChannels(parts: OperatorParts): Answer {
  const { channels: rows, stored } = rulesNow(parts)
  const there = parts.catalogue().all()
  const gone = rows.filter(({ channel }) => !there.some(({ id }) => id === channel))
  const unusable = new Map(stored.map(row => [row.id, row]))
  return {
    channels: [
      ...there.map(channel => showChannel(parts, channel)),
      ...gone.map(row => showGone(parts, row, unusable.get(row.channel))),
    ],
  }
}

function showChannel(parts: OperatorParts, { id, baseUrl }: Channel): Answer {
  const row = parts.catalogue().ruleOf(id)
  const state = row.proxyLost ? 'proxy unreadable' : row.disabled ? 'disabled' : 'enabled'
  const now = parts.running()
  const health = now === undefined ? 'not running' : (now.health(id)?.state ?? 'unused')
  return showRow(parts, row, { host: new URL(baseUrl).host, state, health })
}

function showGone(parts: OperatorParts, row: ChannelRow, stored: StoredChannel | undefined): Answer {
  const problem = parts.catalogue().problems.get(row.channel)
  const state = problem === undefined ? 'not there' : 'unusable'
  const shown = showRow(parts, row, { host: stored?.origin ?? null, state, health: null })
  return problem === undefined ? shown : { ...shown, problem }
}

function showRow({ rules }: OperatorParts, row: ChannelRow, { host, ...state }: Answer): Answer {
  const stored = rules.current.stored.find(({ id }) => id === row.channel)
  return {
    ...{ channel: row.channel, name: stored?.name ?? null, host, ...state },
    ...{ weight: row.weight, priority: row.priority },
    rpm: row.requestsPerMinute,
    tpm: row.tokensPerMinute,
    concurrency: row.concurrency,
    proxy: row.proxy === null && !row.proxyLost ? null : 'set',
    tags: row.tags.length === 0 ? null : row.tags,
    foreignIds: row.foreignIds ? 'on' : 'off',
  }
}

/** Reads one credential from each line of the input. */
async function create(parts: OperatorParts, input: Input): Promise<Answer> {
  const { proxy: _proxy, ...rule } = readChange(input)
  const credentials = linesOf(input.credentials).map(line => new Secret(line))
  const baseUrl = textOf(input['base-url'], '--base-url', bounds.baseUrlCharsMax) ?? null
  const { ids, warnings } = await createChannels(parts, by, {
    ...{ ...rule, provider: String(input.provider ?? ''), credentials, name: textOf(input.name, '--name') },
    setting: { baseUrl },
  })
  return { channels: ids.map(channel => ({ channel })), ...warningOf(warnings) }
}

const linesOf = (given: unknown): readonly string[] =>
  String(given ?? '')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

const warningOf = (warnings: readonly string[]): Answer =>
  warnings.length === 0 ? {} : { warning: warnings.join(' ') }

async function setCredential(parts: OperatorParts, input: Input): Promise<Answer> {
  const [line, ...others] = linesOf(input.credentials)
  if (line === undefined || others.length > 0) throw new OperatorError('Send exactly one credential on standard input.')
  return await change(parts, { channel: idOf(parts, input.channel), credential: new Secret(line) })
}

async function setChannel(parts: OperatorParts, input: Input): Promise<Answer> {
  const channel = idOf(parts, input.channel)
  const wanted = readChange(input)
  if (Object.keys(wanted).length === 0) {
    const options =
      '--weight, --priority, --rpm, --tpm, --concurrency, --proxy, --tags, --foreign-ids, --disable or --enable'
    throw new OperatorError(`Nothing to change. Options: ${options}.`)
  }
  return await change(parts, { channel, ...wanted })
}

const switchOne = (parts: OperatorParts, input: Input, disabled: boolean): Promise<Answer> =>
  change(parts, { channel: idOf(parts, input.channel), disabled })

async function change(parts: OperatorParts, wanted: ChangedChannel): Promise<Answer> {
  const { warnings } = await changeChannels(parts, by, [wanted])
  const channel = parts
    .catalogue()
    .all()
    .find(({ id }) => id === wanted.channel)
  const shown = channel === undefined ? { channel: wanted.channel, state: 'unusable' } : showChannel(parts, channel)
  return { ...shown, ...warningOf(warnings) }
}

type Wanted = ChannelRule & Pick<ChangedChannel, 'proxy'>

function readChange(input: Input): Wanted {
  if (input.disable === true && input.enable === true)
    throw new OperatorError('Use either --disable or --enable, not both.')
  const given = {
    disabled: input.disable === true ? true : input.enable === true ? false : undefined,
    weight: countOf(input.weight, '--weight', bounds.weightMax),
    priority: countOf(input.priority, '--priority', bounds.priorityMax),
    requestsPerMinute: capOf(input.rpm, '--rpm'),
    tokensPerMinute: capOf(input.tpm, '--tpm'),
    concurrency: capOf(input.concurrency, '--concurrency'),
    tags: tagsOf(input.tags, '--tags'),
    foreignIds: switchOf(input['foreign-ids'], '--foreign-ids'),
    proxy: proxyOf(input.proxy),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Wanted
}

/** Also accepts a channel that is unusable at the moment. */
function idOf({ catalogue, rules }: OperatorParts, given: unknown): string {
  const id = String(given ?? '')
  const named = catalogue().channelNamed(id)?.id
  const isThere =
    catalogue()
      .all()
      .some(one => one.id === id) || rules.current.stored.some(one => one.id === id)
  if (named !== undefined || isThere) return named ?? id
  throw new OperatorError(
    'Unknown channel. See: weir channels list. While Weir does not run, this command only sees channels whose keys ' +
      'are in its own environment.',
  )
}

async function remove(parts: OperatorParts, input: Input): Promise<Answer> {
  const channel = idOf(parts, input.channel)
  const { warnings } = await removeChannels(parts, by, [channel])
  return { channel, state: 'deleted', ...warningOf(warnings) }
}

async function listModels(parts: OperatorParts, input: Input): Promise<Answer> {
  const id = idOf(parts, input.channel)
  const listed = await runningOf(parts).listModels(id)
  const provider = parts.catalogue().providers.get(id.slice(0, id.indexOf('#')))!
  const { fresh, gone, priced } = compareModels(parts, provider, listed)
  const row = (model: string, state: string): Answer => ({ model, state, priced: priced.includes(model) })
  const isFresh = new Set(fresh)
  return {
    models: [
      ...listed.map(model => row(model, isFresh.has(model) ? 'new' : 'known')),
      ...gone.map(model => row(model, 'gone')),
    ],
  }
}

/** Moves the settings of a channel to another one, for example after its key was renewed. */
async function moveRules(parts: OperatorParts, input: Input): Promise<Answer> {
  const { channels: rows } = rulesNow(parts)
  const from = String(input.from ?? '')
  const to = idOf(parts, input.to)
  const row = rows.find(({ channel }) => channel === from)
  if (row === undefined) throw new OperatorError('The first channel has no settings to move. See: weir channels list')
  if (from === to) throw new OperatorError('The two channels are the same.')
  if (rows.some(({ channel }) => channel === to)) {
    throw new OperatorError('The second channel has settings already. To remove them: weir channels reset <channel>')
  }
  if (row.proxyLost)
    throw new OperatorError('The proxy of the first channel cannot be decrypted. Set it again there first.')
  const { channel: _channel, ...said } = row
  const answer = await change(parts, { ...said, channel: to })
  await parts.writer.run('resetChannel', { channel: from, author }, by)
  parts.rules.renew()
  return answer
}

async function resetChannel(parts: OperatorParts, input: Input): Promise<Answer> {
  const given = String(input.channel ?? '')
  const channel = parts.catalogue().channelNamed(given)?.id ?? given
  const { done } = await parts.writer.run('resetChannel', { channel, author }, by)
  if (done === 'unknown') throw new OperatorError('This channel has no settings to reset. See: weir channels list')
  parts.rules.renew()
  return { channel, state: 'as any other' }
}
