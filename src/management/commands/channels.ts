// Channels: listed, and what is to be known of them beyond their credential. In force from the next call on.

import { bounds } from '../../base/bounds.ts'
import type { Secret } from '../../base/secret.ts'
import type { ChannelChange, ChannelRow } from '../../store/rules.ts'
import type { Channel } from '../../upstreams/catalogue.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { author, by, OperatorError } from '../command.ts'
import { deadRoutes, rulesNow } from '../rule-check.ts'
import { capOf, countOf, proxyOf, tagsOf } from '../rule-input.ts'

export function channelCommands(parts: OperatorParts): Commands {
  return {
    'channels-list': async () => listChannels(parts),
    'channels-set': input => setChannel(parts, input),
    'channels-move': input => moveRules(parts, input),
    'channels-reset': input => resetChannel(parts, input),
  }
}

/** Those that there are, and behind them what is said of others. */
function listChannels(parts: OperatorParts): Answer {
  const { channels: rows } = rulesNow(parts)
  const there = parts.catalogue().all()
  const gone = rows.filter(({ channel }) => !there.some(({ id }) => id === channel))
  return { channels: [...there.map(channel => showChannel(parts, channel)), ...gone.map(showGone)] }
}

function showChannel({ catalogue, channelHealth }: OperatorParts, { id, baseUrl }: Channel): Answer {
  const row = catalogue().ruleOf(id)
  const state = row.proxyLost ? 'proxy unreadable' : row.disabled ? 'disabled' : 'enabled'
  return showRow(row, { host: new URL(baseUrl).host, state, health: channelHealth(id) })
}

const showGone = (row: ChannelRow): Answer => showRow(row, { host: '-', state: 'not there', health: '-' })

function showRow(row: ChannelRow, { host, ...state }: Answer): Answer {
  return {
    ...{ channel: row.channel, host, ...state, weight: row.weight, priority: row.priority },
    rpm: row.requestsPerMinute,
    tpm: row.tokensPerMinute,
    concurrency: row.concurrency,
    proxy: row.proxy === null && !row.proxyLost ? '-' : 'set',
    tags: row.tags.length === 0 ? '-' : row.tags.join(),
  }
}

async function setChannel(parts: OperatorParts, input: Input): Promise<Answer> {
  rulesNow(parts)
  const channel = channelOf(parts, input.channel)
  const { proxy, ...wanted } = readChange(input)
  if (proxy === undefined && Object.keys(wanted).length === 0) {
    const options = '--weight, --priority, --rpm, --tpm, --concurrency, --proxy, --tags, --disable or --enable'
    throw new OperatorError(`Say what to set: ${options}.`)
  }
  const dead = deadNow(parts)
  await write(parts, { channel: channel.id, ...wanted }, proxy)
  return { ...showChannel(parts, channel), ...warningOf(parts, channel, dead) }
}

type Wanted = Omit<ChannelChange, 'channel' | 'proxy'> & { readonly proxy: Secret | null | undefined }

function readChange(input: Input): Wanted {
  if (input.disable === true && input.enable === true) throw new OperatorError('Say either --disable or --enable.')
  const given = {
    disabled: input.disable === true ? true : input.enable === true ? false : undefined,
    weight: countOf(input.weight, '--weight', bounds.weightMax),
    priority: countOf(input.priority, '--priority', bounds.priorityMax),
    requestsPerMinute: capOf(input.rpm, '--rpm'),
    tokensPerMinute: capOf(input.tpm, '--tpm'),
    concurrency: capOf(input.concurrency, '--concurrency'),
    tags: tagsOf(input.tags, '--tags'),
  }
  const told = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(told) as Omit<Wanted, 'proxy'>), proxy: proxyOf(input.proxy) }
}

async function write(parts: OperatorParts, change: ChannelChange, proxy: Wanted['proxy']): Promise<void> {
  const sealed = proxy && parts.rules.sealProxy(change.channel, proxy)
  const said = proxy === undefined ? change : { ...change, proxy: sealed ?? null }
  const { done } = await parts.writer.run('setChannel', { ...said, author }, by)
  if (done === 'too_many') throw new OperatorError('There are too many rules for channels. Reset some first.')
  parts.rules.renew()
}

function channelOf({ catalogue }: OperatorParts, given: unknown): Channel {
  const id = String(given ?? '')
  const channel = catalogue().channelNamed(id) ?? catalogue().all().find(one => one.id === id)
  if (channel !== undefined) return channel
  throw new OperatorError(
    'There is no such channel here. See: weir channels list. While Weir does not run, only those are seen whose keys ' +
      'are in the environment of this command.',
  )
}

const deadNow = (parts: OperatorParts): readonly string[] => deadRoutes(parts.rules.current.routes, parts.catalogue())

/** Of what is allowed, and perhaps not meant. */
function warningOf(parts: OperatorParts, { id, providerId }: Channel, before: readonly string[]): Answer {
  const catalogue = parts.catalogue()
  const left = catalogue.channelsOf(providerId).map(channel => catalogue.ruleOf(channel.id))
  const dead = deadNow(parts).filter(name => !before.includes(name))
  const { priority, disabled } = catalogue.ruleOf(id)
  const level = left.filter(row => row.priority === priority)
  const warnings = [
    ...(disabled && left.length === 0 ? [`${providerId} has no channel left: calls to its models get 503.`] : []),
    ...(dead.length > 0 ? [`Nothing can answer any more: ${dead.join(', ')}.`] : []),
    ...(level.length > 0 && level.every(({ weight }) => weight === 0)
      ? [`All channels of ${providerId} of this priority have weight 0: they share calls equally.`]
      : []),
  ]
  return warnings.length === 0 ? {} : { warning: warnings.join(' ') }
}

/** For a key that was renewed: what was said of the old one holds for the new one. */
async function moveRules(parts: OperatorParts, input: Input): Promise<Answer> {
  const { channels: rows } = rulesNow(parts)
  const from = String(input.from ?? '')
  const to = channelOf(parts, input.to)
  const row = rows.find(({ channel }) => channel === from)
  if (row === undefined) throw new OperatorError('Nothing is said of the first channel. See: weir channels list.')
  if (from === to.id) throw new OperatorError('These are the same channel.')
  if (rows.some(({ channel }) => channel === to.id)) {
    throw new OperatorError('Something is said of the second channel already. To forget it: weir channels reset.')
  }
  if (row.proxyLost) throw new OperatorError('The proxy of the first channel cannot be read. Set it again there first.')
  const { proxy, channel: _channel, ...said } = row
  await write(parts, { ...said, channel: to.id }, proxy)
  await parts.writer.run('resetChannel', { channel: from }, by)
  parts.rules.renew()
  return showChannel(parts, to)
}

async function resetChannel(parts: OperatorParts, input: Input): Promise<Answer> {
  const given = String(input.channel ?? '')
  const channel = parts.catalogue().channelNamed(given)?.id ?? given
  const { done } = await parts.writer.run('resetChannel', { channel }, by)
  if (done === 'unknown') throw new OperatorError('Nothing is said of this channel. See: weir channels list.')
  parts.rules.renew()
  return { channel, state: 'as any other' }
}
