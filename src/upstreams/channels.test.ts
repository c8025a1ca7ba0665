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
  const road = { origin: 'https://x.example', permitted: true }
  const made = new Map(
    [...channelIds(providerId, keys)].map(([key, id]) => [key, { id, providerId, networkPath: road }]),
  )
  return keys.map(key => made.get(key) as unknown as Channel)
}

const open = (keys: readonly string[], tags: readonly string[] = []): Channels =>
  openChannels([
    { providerId: 'river', tags, listed: listed('river', keys) },
    { providerId: 'other', tags: [], listed: listed('other', ['x', 'y']) },
  ])

const of = (key: string): string => channelId('river', key)
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
      fc.property(keys, fc.integer(), (some, turn) => {
        const at = some.length === 0 ? 0 : Math.abs(turn) % some.length
        const turned = [...some.slice(at), ...some.slice(0, at)].toReversed()
        const [before, after] = [channelIds('river', some), channelIds('river', turned)]
        expect([...after].toSorted()).toEqual([...before].toSorted())
        expect(new Set(before.values()).size).toBe(some.length)
      }),
    )
  })

  test('is longer for a key whose fingerprint is already used', () => {
    const seen = new Map<string, string>()
    let pair: [string, string] | undefined
    for (let at = 0; pair === undefined && at < 1_000_000; at++) {
      const [key, name] = [`sk-${at}`, of(`sk-${at}`)]
      if (seen.has(name)) pair = [seen.get(name)!, key]
      seen.set(name, key)
    }
    const names = channelIds('river', pair!)
    expect(names.get(pair![0])).toBe(of(pair![0]))
    expect(names.get(pair![1])).toMatch(/^river#[0-9a-z]{9}$/)
    expect(names.get(pair![1])).toEndWith(of(pair![1]).slice(6))
  })
})

describe('a channel is found', () => {
  test('by its id, or by its position in the list, also when it is listed twice', () => {
    const channels = open(['a', 'b', 'a', 'c'])
    expect(ids(channels.channelsOf('river'))).toEqual([of('a'), of('b'), of('c')])
    for (const key of ['a', 'b', 'c']) expect(channels.findChannel(of(key))?.id).toBe(of(key))
    const places = ['a', 'b', 'a', 'c'].map((_, at) => channels.findChannel(`river#${at + 1}`)?.id)
    expect(places).toEqual([of('a'), of('b'), of('a'), of('c')])
    const strangers = ['river#0', 'river#5', 'river#01', 'river#99999', 'river#', '', '#1', 'lake#1', 'river#1#1']
    for (const id of strangers) expect([id, channels.findChannel(id)]).toEqual([id, undefined])
  })

  test('for a renewed key, if the provider has only one channel', () => {
    const [one, two] = [open(['new']), open(['new', 'second'])]
    expect(one.findChannel(of('old'))).toBeUndefined()
    expect(one.findOrSuccessor(of('old'))?.id).toBe(of('new'))
    expect(one.findOrSuccessor('river#7')?.id).toBe(of('new'))
    expect(two.findOrSuccessor(of('second'))?.id).toBe(of('second'))
    for (const id of [of('old'), 'lake#1', '', 'river', '#'])
      expect([id, two.findOrSuccessor(id)]).toEqual([id, undefined])
    expect(open([]).findOrSuccessor(of('old'))).toBeUndefined()
  })
})

describe('the rules of a channel', () => {
  test('are the defaults with the tags of its provider, if nothing is configured', () => {
    const channels = open(['a'], ['eu'])
    expect(channels.rulesOf(of('a'))).toEqual(row(of('a'), { tags: ['eu'] }))
    expect(channels.rulesOf('nobody#1')).toEqual(row('nobody#1'))
    channels.setRules([row(of('a'), { weight: 5, tags: ['no-training', 'eu'] }), row('gone#1', { weight: 9 })])
    expect(channels.rulesOf(of('a'))).toEqual(row(of('a'), { weight: 5, tags: ['eu', 'no-training'] }))
    channels.setRules([])
    expect(channels.rulesOf(of('a')).weight).toBe(1)
  })

  test('disable it for calls, but it can still be found', () => {
    const channels = open(['a', 'b'])
    channels.setRules([row(of('a'), { disabled: true })])
    expect(ids(channels.channelsOf('river'))).toEqual([of('b')])
    expect(ids(channels.channelsOf('other'))).toHaveLength(2)
    expect(ids(channels.all())).toContain(of('a'))
    expect([channels.findChannel(of('a'))?.id, channels.findOrSuccessor('river#1')?.id]).toEqual([of('a'), of('a')])
    channels.setRules([])
    expect(ids(channels.channelsOf('river'))).toEqual([of('a'), of('b')])
  })

  test('set its proxy, and the network path object stays the same until the proxy changes', () => {
    const channels = open(['a', 'b'])
    const road = (key: string) => channels.channelsOf('river').find(({ id }) => id === of(key))!.networkPath
    const plain = [road('a'), road('b')]
    const proxy = new Secret('http://proxy')
    channels.setRules([row(of('a'), { proxy })])
    const first = road('a')
    expect([first.proxy, first.origin]).toEqual([proxy, plain[0]!.origin])
    expect(channels.findChannel('river#1')!.networkPath).toBe(first)
    channels.setRules([row(of('a'), { proxy, weight: 7 })])
    expect([road('a') === first, road('b') === plain[1]]).toEqual([true, true])
    const other = new Secret('http://proxy')
    channels.setRules([row(of('a'), { proxy: other })])
    expect(road('a').proxy === other).toBe(true)
    channels.setRules([])
    expect(road('a') === plain[0]).toBe(true)
  })

  test('make it unavailable when its proxy cannot be decrypted', () => {
    const channels = open(['a'])
    channels.setRules([row(of('a'), { disabled: true, proxyLost: true })])
    expect(channels.channelsOf('river')).toEqual([])
    for (const id of [of('a'), 'river#1', of('old')]) {
      expect([channels.findChannel(id), channels.findOrSuccessor(id)]).toEqual([undefined, undefined])
    }
  })
})
