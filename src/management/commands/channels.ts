// Commands about channels: list, create, change, test. Changes apply from the next call on.

import { bounds } from '../../base/bounds.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { ChannelRow, StoredChannel } from '../../store/rules/rules.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator, operatorAuthor } from '../command.ts'
import { parseTextOption } from '../command-input.ts'
import type { LiveGateway } from '../live-gateway.ts'
import { OperatorError } from '../operator-error.ts'
import type { ChangedChannel, ChannelRule } from '../services/channels.ts'
import { changeChannels, createChannels, removeChannels } from '../services/channels.ts'
import { compareModels } from '../services/providers.ts'
import { readRules } from '../services/rule-check.ts'
import { parseCap, parseCount, parseProxy, parseRuleSwitch, parseTags } from '../services/rule-input.ts'

export function channelCommands(parts: OperatorParts): OperatorCommands {
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
export function channelAskCommands(parts: OperatorParts): OperatorCommands {
  return {
    'channels-test': async input => {
      const { sent, received, timings, ...trial } = await runningOf(parts).testChannel(
        idOf(parts, input.channel),
        parseTextOption(input.model, '--model'),
      )
      return { ...trial, ...timings, sent, received }
    },
    'channels-models': input => listModels(parts, input),
  }
}

function runningOf({ liveGateway }: OperatorParts): LiveGateway {
  const now = liveGateway()
  if (now === undefined) throw new OperatorError('This command needs a running gateway. Start it: weir serve')
  return now
}

/** Lists the usable channels, then unusable ones and settings of channels whose keys are gone. */
function listChannels(parts: OperatorParts): CommandAnswer {
  const { channels: rows, stored } = readRules(parts)
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

function showChannel(parts: OperatorParts, { id, baseUrl }: Channel): CommandAnswer {
  const row = parts.catalogue().rulesOf(id)
  const state = row.proxyLost ? 'proxy unreadable' : row.disabled ? 'disabled' : 'enabled'
  const now = parts.liveGateway()
  const health = now === undefined ? 'not running' : (now.health(id)?.state ?? 'unused')
  return showRow(parts, row, { host: new URL(baseUrl).host, state, health })
}

function showGone(parts: OperatorParts, row: ChannelRow, stored: StoredChannel | undefined): CommandAnswer {
  const problem = parts.catalogue().problems.get(row.channel)
  const state = problem === undefined ? 'not there' : 'unusable'
  const shown = showRow(parts, row, { host: stored?.origin ?? null, state, health: null })
  return problem === undefined ? shown : { ...shown, problem }
}

function showRow({ rules }: OperatorParts, row: ChannelRow, { host, ...state }: CommandAnswer): CommandAnswer {
  const stored = rules.current.stored.find(({ id }) => id === row.channel)
  return {
    channel: row.channel,
    name: stored?.name ?? null,
    host,
    ...state,
    weight: row.weight,
    priority: row.priority,
    rpm: row.requestsPerMinute,
    tpm: row.tokensPerMinute,
    concurrency: row.concurrency,
    proxy: row.proxy === null && !row.proxyLost ? null : 'set',
    tags: row.tags.length === 0 ? null : row.tags,
    foreignIds: row.foreignIds ? 'on' : 'off',
  }
}

/** Reads one credential from each line of the input. */
async function create(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const { proxy: _proxy, ...rule } = readChange(input)
  const credentials = linesOf(input.credentials).map(line => new Secret(line))
  const baseUrl = parseTextOption(input['base-url'], '--base-url', bounds.baseUrlCharsMax) ?? null
  const { ids, warnings } = await createChannels(parts, byOperator, {
    ...rule,
    provider: String(input.provider ?? ''),
    credentials,
    name: parseTextOption(input.name, '--name'),
    setting: { baseUrl },
  })
  return { channels: ids.map(channel => ({ channel })), ...warningOf(warnings) }
}

const linesOf = (given: unknown): readonly string[] =>
  String(given ?? '')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

const warningOf = (warnings: readonly string[]): CommandAnswer =>
  warnings.length === 0 ? {} : { warning: warnings.join(' ') }

async function setCredential(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const [line, ...others] = linesOf(input.credentials)
  if (line === undefined || others.length > 0) throw new OperatorError('Send exactly one credential on standard input.')
  return await change(parts, { channel: idOf(parts, input.channel), credential: new Secret(line) })
}

async function setChannel(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const channel = idOf(parts, input.channel)
  const wanted = readChange(input)
  if (Object.keys(wanted).length === 0) {
    const options =
      '--weight, --priority, --rpm, --tpm, --concurrency, --proxy, --tags, --foreign-ids, --disable or --enable'
    throw new OperatorError(`Nothing to change. Options: ${options}.`)
  }
  return await change(parts, { channel, ...wanted })
}

const switchOne = (parts: OperatorParts, input: CommandInput, disabled: boolean): Promise<CommandAnswer> =>
  change(parts, { channel: idOf(parts, input.channel), disabled })

async function change(parts: OperatorParts, wanted: ChangedChannel): Promise<CommandAnswer> {
  const { warnings } = await changeChannels(parts, byOperator, [wanted])
  const channel = parts
    .catalogue()
    .all()
    .find(({ id }) => id === wanted.channel)
  const shown = channel === undefined ? { channel: wanted.channel, state: 'unusable' } : showChannel(parts, channel)
  return { ...shown, ...warningOf(warnings) }
}

type Wanted = ChannelRule & Pick<ChangedChannel, 'proxy'>

function readChange(input: CommandInput): Wanted {
  if (input.disable === true && input.enable === true)
    throw new OperatorError('Use either --disable or --enable, not both.')
  const given = {
    disabled: input.disable === true ? true : input.enable === true ? false : undefined,
    weight: parseCount(input.weight, '--weight', bounds.weightMax),
    priority: parseCount(input.priority, '--priority', bounds.priorityMax),
    requestsPerMinute: parseCap(input.rpm, '--rpm'),
    tokensPerMinute: parseCap(input.tpm, '--tpm'),
    concurrency: parseCap(input.concurrency, '--concurrency'),
    tags: parseTags(input.tags, '--tags'),
    foreignIds: parseRuleSwitch(input['foreign-ids'], '--foreign-ids'),
    proxy: parseProxy(input.proxy),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Wanted
}

/** Also accepts a channel that is unusable at the moment. */
function idOf({ catalogue, rules }: OperatorParts, given: unknown): string {
  const id = String(given ?? '')
  const named = catalogue().findChannel(id)?.id
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

async function remove(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const channel = idOf(parts, input.channel)
  const { warnings } = await removeChannels(parts, byOperator, [channel])
  return { channel, state: 'deleted', ...warningOf(warnings) }
}

async function listModels(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const id = idOf(parts, input.channel)
  const listed = await runningOf(parts).listModels(id)
  const provider = parts.catalogue().providers.get(id.slice(0, id.indexOf('#')))!
  const { fresh, gone, priced } = compareModels(parts, provider, listed)
  const row = (model: string, state: string): CommandAnswer => ({ model, state, priced: priced.includes(model) })
  const isFresh = new Set(fresh)
  return {
    models: [
      ...listed.map(model => row(model, isFresh.has(model) ? 'new' : 'known')),
      ...gone.map(model => row(model, 'gone')),
    ],
  }
}

/** Moves the settings of a channel to another one, for example after its key was renewed. */
async function moveRules(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const { channels: rows } = readRules(parts)
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
  await parts.writer.run('resetChannel', { channel: from, author: operatorAuthor }, byOperator)
  parts.rules.reload()
  return answer
}

async function resetChannel(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const given = String(input.channel ?? '')
  const channel = parts.catalogue().findChannel(given)?.id ?? given
  const { done } = await parts.writer.run('resetChannel', { channel, author: operatorAuthor }, byOperator)
  if (done === 'unknown') throw new OperatorError('This channel has no settings to reset. See: weir channels list')
  parts.rules.reload()
  return { channel, state: 'as any other' }
}
