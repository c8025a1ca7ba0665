// Channels by name: the same whatever the order of their keys, and what an operator says of each.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Secret } from '../base/secrets/secret.ts'
import type { ChannelRow } from '../store/rules/rules.ts'
import type { Channel } from './channel.ts'
import type { Channels } from './channels.ts'
import { channelId, nameChannels, openChannels } from './channels.ts'

const row = (channel: string, more: Partial<ChannelRow> = {}): ChannelRow => ({
  ...{ channel, disabled: false, weight: 1, priority: 0, requestsPerMinute: null, tokensPerMinute: null },
  ...{ concurrency: null, proxy: null, tags: [], foreignIds: false, ...more },
})

/** As a catalogue makes them: one object for each key, as often as the key is listed. */
function listed(providerId: string, keys: readonly string[]): readonly Channel[] {
  const road = { origin: 'https://x.example', permitted: true }
  const made = new Map([...nameChannels(providerId, keys)].map(([key, id]) => [key, { id, providerId, road }]))
  return keys.map(key => made.get(key) as unknown as Channel)
}

const open = (keys: readonly string[], tags: readonly string[] = []): Channels =>
  openChannels([
    { providerId: 'river', tags, listed: listed('river', keys) },
    { providerId: 'other', tags: [], listed: listed('other', ['x', 'y']) },
  ])

const of = (key: string): string => channelId('river', key)
const ids = (channels: readonly Channel[]): readonly string[] => channels.map(({ id }) => id)

describe('the name of a channel', () => {
  test('is its provider and a fingerprint of its key, which says nothing of the key', () => {
    expect(channelId('river', 'sk-secret')).toMatch(/^river#[0-9a-z]{6}$/)
    expect(channelId('river', '')).toBe('river#open')
    expect(channelId('lake', 'sk-secret').slice(5)).not.toBe(channelId('river', 'sk-secret').slice(6))
  })

  test('does not depend on where the key stands', () => {
    const keys = fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 20 })
    fc.assert(
      fc.property(keys, fc.integer(), (some, turn) => {
        const at = some.length === 0 ? 0 : Math.abs(turn) % some.length
        const turned = [...some.slice(at), ...some.slice(0, at)].toReversed()
        const [before, after] = [nameChannels('river', some), nameChannels('river', turned)]
        expect([...after].toSorted()).toEqual([...before].toSorted())
        expect(new Set(before.values()).size).toBe(some.length)
      }),
    )
  })

  test('is longer for a key whose fingerprint another has', () => {
    const seen = new Map<string, string>()
    let pair: [string, string] | undefined
    for (let at = 0; pair === undefined && at < 1_000_000; at++) {
      const [key, name] = [`sk-${at}`, of(`sk-${at}`)]
      if (seen.has(name)) pair = [seen.get(name)!, key]
      seen.set(name, key)
    }
    const names = nameChannels('river', pair!)
    expect(names.get(pair![0])).toBe(of(pair![0]))
    expect(names.get(pair![1])).toMatch(/^river#[0-9a-z]{9}$/)
    expect(names.get(pair![1])).toEndWith(of(pair![1]).slice(6))
  })
})

describe('found', () => {
  test('by its name, or by its place in the list, twice listed or not', () => {
    const channels = open(['a', 'b', 'a', 'c'])
    expect(ids(channels.channelsOf('river'))).toEqual([of('a'), of('b'), of('c')])
    for (const key of ['a', 'b', 'c']) expect(channels.channelNamed(of(key))?.id).toBe(of(key))
    const places = ['a', 'b', 'a', 'c'].map((_, at) => channels.channelNamed(`river#${at + 1}`)?.id)
    expect(places).toEqual([of('a'), of('b'), of('a'), of('c')])
    const strangers = ['river#0', 'river#5', 'river#01', 'river#99999', 'river#', '', '#1', 'lake#1', 'river#1#1']
    for (const id of strangers) expect([id, channels.channelNamed(id)]).toEqual([id, undefined])
  })

  test('as the heir of a key that was renewed, where there is no doubt', () => {
    const [one, two] = [open(['new']), open(['new', 'second'])]
    expect(one.channelNamed(of('old'))).toBeUndefined()
    expect(one.heirOf(of('old'))?.id).toBe(of('new'))
    expect(one.heirOf('river#7')?.id).toBe(of('new'))
    expect(two.heirOf(of('second'))?.id).toBe(of('second'))
    for (const id of [of('old'), 'lake#1', '', 'river', '#']) expect([id, two.heirOf(id)]).toEqual([id, undefined])
    expect(open([]).heirOf(of('old'))).toBeUndefined()
  })
})

describe('what is said of a channel', () => {
  test('is what is plain where nothing is said, with the tags of its provider', () => {
    const channels = open(['a'], ['eu'])
    expect(channels.ruleOf(of('a'))).toEqual(row(of('a'), { tags: ['eu'] }))
    expect(channels.ruleOf('nobody#1')).toEqual(row('nobody#1'))
    channels.setRules([row(of('a'), { weight: 5, tags: ['no-training', 'eu'] }), row('gone#1', { weight: 9 })])
    expect(channels.ruleOf(of('a'))).toEqual(row(of('a'), { weight: 5, tags: ['eu', 'no-training'] }))
    channels.setRules([])
    expect(channels.ruleOf(of('a')).weight).toBe(1)
  })

  test('takes it out of those that may be used, and leaves what it keeps', () => {
    const channels = open(['a', 'b'])
    channels.setRules([row(of('a'), { disabled: true })])
    expect(ids(channels.channelsOf('river'))).toEqual([of('b')])
    expect(ids(channels.channelsOf('other'))).toHaveLength(2)
    expect(ids(channels.all())).toContain(of('a'))
    expect([channels.channelNamed(of('a'))?.id, channels.heirOf('river#1')?.id]).toEqual([of('a'), of('a')])
    channels.setRules([])
    expect(ids(channels.channelsOf('river'))).toEqual([of('a'), of('b')])
  })

  test('gives it a proxy on its road, which stays the same road until that changes', () => {
    const channels = open(['a', 'b'])
    const road = (key: string) => channels.channelsOf('river').find(({ id }) => id === of(key))!.road
    const plain = [road('a'), road('b')]
    const proxy = new Secret('http://proxy')
    channels.setRules([row(of('a'), { proxy })])
    const first = road('a')
    expect([first.proxy, first.origin]).toEqual([proxy, plain[0]!.origin])
    expect(channels.channelNamed('river#1')!.road).toBe(first)
    channels.setRules([row(of('a'), { proxy, weight: 7 })])
    expect([road('a') === first, road('b') === plain[1]]).toEqual([true, true])
    const other = new Secret('http://proxy')
    channels.setRules([row(of('a'), { proxy: other })])
    expect(road('a').proxy === other).toBe(true)
    channels.setRules([])
    expect(road('a') === plain[0]).toBe(true)
  })

  test('closes it altogether where its proxy is lost', () => {
    const channels = open(['a'])
    channels.setRules([row(of('a'), { disabled: true, proxyLost: true })])
    expect(channels.channelsOf('river')).toEqual([])
    for (const id of [of('a'), 'river#1', of('old')]) {
      expect([channels.channelNamed(id), channels.heirOf(id)]).toEqual([undefined, undefined])
    }
  })
})
