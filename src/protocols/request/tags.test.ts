// Tests the labels of callers: cleaned and cut, and never refused.

import { describe, expect, test } from 'bun:test'
import { formatTags, readEndUser, readTags } from './tags.ts'

describe('the end user', () => {
  test('is the first value that is a string', () => {
    expect(readEndUser('u-1', 's-1')).toBe('u-1')
    expect(readEndUser(undefined, 's-1')).toBe('s-1')
    expect(readEndUser(5, null)).toBeUndefined()
    expect(readEndUser('')).toBeUndefined()
  })

  test('has only visible characters, and is cut', () => {
    expect(readEndUser('  a\u0000b\u202ec\r\n\u2028d\ud800 ')).toBe('abcd')
    expect(readEndUser('x'.repeat(10_000_000))).toBe('x'.repeat(256))
    expect(readEndUser('Zoë 水 🌊')).toBe('Zoë 水 🌊')
    expect(readEndUser(`${'x'.repeat(255)}🌊`)).toBe('x'.repeat(255))
    expect(readEndUser('\u0007'.repeat(1_000))).toBeUndefined()
  })
})

describe('tags of the body', () => {
  test('are the string fields of an object', () => {
    expect(readTags({ team: 'search', run: 5, deep: { a: 'b' }, none: null, empty: '' })).toEqual({
      team: 'search',
      empty: '',
    })
    for (const none of [undefined, null, 'x', 5, [], ['a'], {}, { a: 1 }]) expect(readTags(none)).toBeUndefined()
  })

  test('are limited in number and length', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`tag-${index}`, 'x'.repeat(1_000)]))
    const tags = readTags(many)!
    expect(Object.keys(tags)).toHaveLength(16)
    expect(Object.values(tags)[0]).toBe('x'.repeat(64))
    expect(Object.keys(readTags({ ['y'.repeat(100)]: 'v' })!)).toEqual(['y'.repeat(64)])
  })

  test('may have any name', () => {
    const tags = readTags(JSON.parse('{"__proto__":"a","constructor":"b"}'))!
    expect(JSON.stringify(tags)).toBe('{"__proto__":"a","constructor":"b"}')
  })
})

describe('tags as text for the record', () => {
  const rows: readonly (readonly [header: string, text: string | undefined])[] = [
    ['team=search', '{"team":"search"}'],
    [' team = search , beta,,', '{"team":"search","beta":""}'],
    ['a=b=c', '{"a":"b=c"}'],
    ['', undefined],
    [' , ,=,=x', undefined],
    ['a=1, a=2', '{"a":"2"}'],
    ['n\u0007ame=va\u0000lue', '{"name":"value"}'],
  ]

  test.each(rows)('of the header %j are %p', (header, text) => {
    expect(formatTags(undefined, header)).toBe(text)
  })

  test('are those of header and body, and the header wins', () => {
    expect(formatTags({ team: 'search', run: '7' }, undefined)).toBe('{"team":"search","run":"7"}')
    expect(formatTags({ team: 'search', run: '7' }, 'team=ads')).toBe('{"team":"ads","run":"7"}')
    expect(formatTags(undefined, undefined)).toBeUndefined()
  })

  test('are at most sixteen, those of the header first', () => {
    const body = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`b${index}`, '']))
    const header = Array.from({ length: 40 }, (_, index) => `h${index}`).join(',')
    expect(Object.keys(JSON.parse(formatTags(body, header)!) as object)).toEqual(
      Array.from({ length: 16 }, (_, index) => `h${index}`),
    )
    expect(Object.keys(JSON.parse(formatTags(body, 'x')!) as object)).toHaveLength(16)
  })
})
