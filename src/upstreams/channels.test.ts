// Tests channel ids, which do not depend on the order of keys, and the rules of channels.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Secret } from '../base/secrets/secret.ts'
import type { ChannelRow } from '../store/rules/rules.ts'
import type { Channel } from './channel.ts'
import type { Channels } from './channels.ts'
import { channelId, channelIds, openChannels } from './channels.ts'

const row = (channel: string, more: Partial<ChannelRow> = {}): ChannelRow => ({
  channel,
  disabled: false,
  weight: 1,
  priority: 0,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: null,
  proxy: null,
  tags: [],
  foreignIds: false,
  ...more,
})

/** Channels as the catalogue builds them: one object for each key, repeated if the key is listed twice. */
function listed(providerId: string, keys: readonly string[]): readonly Channel[] {
  const networkPath = { origin: 'https://x.example', permitted: true }
  const byKey = new Map([...channelIds(providerId, keys)].map(([key, id]) => [key, { id, providerId, networkPath }]))
  return keys.map(key => byKey.get(key) as unknown as Channel)
}

const open = (keys: readonly string[], tags: readonly string[] = []): Channels =>
  openChannels([
    { providerId: 'river', tags, listed: listed('river', keys) },
    { providerId: 'other', tags: [], listed: listed('other', ['x', 'y']) },
  ])

const idOf = (key: string): string => channelId('river', key)
const ids = (channels: readonly Channel[]): readonly string[] => channels.map(({ id }) => id)

describe('the id of a channel', () => {
  test('is its provider and a fingerprint that does not reveal the key', () => {
    expect(channelId('river', 'sk-secret')).toMatch(/^river#[0-9a-z]{6}$/)
    expect(channelId('river', '')).toBe('river#open')
    expect(channelId('lake', 'sk-secret').slice(5)).not.toBe(channelId('river', 'sk-secret').slice(6))
  })

  test('does not depend on the position of the key', () => {
    const keys = fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 20 })
    fc.assert(
      fc.property(keys, fc.integer(), (keyList, offset) => {
        const index = keyList.length === 0 ? 0 : Math.abs(offset) % keyList.length
        const reordered = [...keyList.slice(index), ...keyList.slice(0, index)].toReversed()
        const [before, after] = [channelIds('river', keyList), channelIds('river', reordered)]
        expect([...after].toSorted()).toEqual([...before].toSorted())
        expect(new Set(before.values()).size).toBe(keyList.length)
      }),
    )
  })

  test('is longer for a key whose fingerprint is already used', () => {
    const seen = new Map<string, string>()
    let pair: [string, string] | undefined
    for (let index = 0; pair === undefined && index < 1_000_000; index++) {
      const [key, name] = [`sk-${index}`, idOf(`sk-${index}`)]
      if (seen.has(name)) pair = [seen.get(name)!, key]
      seen.set(name, key)
    }
    const names = channelIds('river', pair!)
    expect(names.get(pair![0])).toBe(idOf(pair![0]))
    expect(names.get(pair![1])).toMatch(/^river#[0-9a-z]{9}$/)
    expect(names.get(pair![1])).toEndWith(idOf(pair![1]).slice(6))
  })
})

describe('a channel is found', () => {
  test('by its id, or by its position in the list, also when it is listed twice', () => {
    const channels = open(['a', 'b', 'a', 'c'])
    expect(ids(channels.channelsOf('river'))).toEqual([idOf('a'), idOf('b'), idOf('c')])
    for (const key of ['a', 'b', 'c']) expect(channels.findChannel(idOf(key))?.id).toBe(idOf(key))
    const byPosition = ['a', 'b', 'a', 'c'].map((_, index) => channels.findChannel(`river#${index + 1}`)?.id)
    expect(byPosition).toEqual([idOf('a'), idOf('b'), idOf('a'), idOf('c')])
    const unknownIds = ['river#0', 'river#5', 'river#01', 'river#99999', 'river#', '', '#1', 'lake#1', 'river#1#1']
    for (const id of unknownIds) expect([id, channels.findChannel(id)]).toEqual([id, undefined])
  })

  test('for a renewed key, if the provider has only one channel', () => {
    const [single, several] = [open(['new']), open(['new', 'second'])]
    expect(single.findChannel(idOf('old'))).toBeUndefined()
    expect(single.findOrSuccessor(idOf('old'))?.id).toBe(idOf('new'))
    expect(single.findOrSuccessor('river#7')?.id).toBe(idOf('new'))
    expect(several.findOrSuccessor(idOf('second'))?.id).toBe(idOf('second'))
    for (const id of [idOf('old'), 'lake#1', '', 'river', '#'])
      expect([id, several.findOrSuccessor(id)]).toEqual([id, undefined])
    expect(open([]).findOrSuccessor(idOf('old'))).toBeUndefined()
  })
})

describe('the rules of a channel', () => {
  test('are the defaults with the tags of its provider, if nothing is configured', () => {
    const channels = open(['a'], ['eu'])
    expect(channels.rulesOf(idOf('a'))).toEqual(row(idOf('a'), { tags: ['eu'] }))
    expect(channels.rulesOf('nobody#1')).toEqual(row('nobody#1'))
    channels.setRules([row(idOf('a'), { weight: 5, tags: ['no-training', 'eu'] }), row('gone#1', { weight: 9 })])
    expect(channels.rulesOf(idOf('a'))).toEqual(row(idOf('a'), { weight: 5, tags: ['eu', 'no-training'] }))
    channels.setRules([])
    expect(channels.rulesOf(idOf('a')).weight).toBe(1)
  })

  test('disable it for calls, but it can still be found', () => {
    const channels = open(['a', 'b'])
    channels.setRules([row(idOf('a'), { disabled: true })])
    expect(ids(channels.channelsOf('river'))).toEqual([idOf('b')])
    expect(ids(channels.channelsOf('other'))).toHaveLength(2)
    expect(ids(channels.all())).toContain(idOf('a'))
    expect([channels.findChannel(idOf('a'))?.id, channels.findOrSuccessor('river#1')?.id]).toEqual([
      idOf('a'),
      idOf('a'),
    ])
    channels.setRules([])
    expect(ids(channels.channelsOf('river'))).toEqual([idOf('a'), idOf('b')])
  })

  test('set its proxy, and the network path object stays the same until the proxy changes', () => {
    const channels = open(['a', 'b'])
    const pathOf = (key: string) => channels.channelsOf('river').find(({ id }) => id === idOf(key))!.networkPath
    const plain = [pathOf('a'), pathOf('b')]
    const proxy = new Secret('http://proxy')
    channels.setRules([row(idOf('a'), { proxy })])
    const first = pathOf('a')
    expect([first.proxy, first.origin]).toEqual([proxy, plain[0]!.origin])
    expect(channels.findChannel('river#1')!.networkPath).toBe(first)
    channels.setRules([row(idOf('a'), { proxy, weight: 7 })])
    expect([pathOf('a') === first, pathOf('b') === plain[1]]).toEqual([true, true])
    const other = new Secret('http://proxy')
    channels.setRules([row(idOf('a'), { proxy: other })])
    expect(pathOf('a').proxy === other).toBe(true)
    channels.setRules([])
    expect(pathOf('a') === plain[0]).toBe(true)
  })

  test('make it unavailable when its proxy cannot be decrypted', () => {
    const channels = open(['a'])
    channels.setRules([row(idOf('a'), { disabled: true, proxyLost: true })])
    expect(channels.channelsOf('river')).toEqual([])
    for (const id of [idOf('a'), 'river#1', idOf('old')]) {
      expect([channels.findChannel(id), channels.findOrSuccessor(id)]).toEqual([undefined, undefined])
    }
  })
})
