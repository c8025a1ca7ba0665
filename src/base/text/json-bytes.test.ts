// Compares the scan of bytes, which need not be JSON, with JSON.parse.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ObjectScan } from './json-bytes.ts'
import { countFields, decodeName, hasLoneSurrogate, parseBoundedJson, scanList, scanObject } from './json-bytes.ts'

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8')
const scan = (text: string, depthMax = 256) => scanObject(bytes(text), { depthMax, valuesMax: 1_000 })

function scanValid(text: string): ObjectScan {
  const result = scan(text)
  if (typeof result === 'string') throw new Error(`not scanned: ${result}`)
  return result
}

function valueOf(text: string, field: string): string | undefined {
  const span = scanValid(text).fields.get(field)
  return span && bytes(text).subarray(span.start, span.end).toString('utf8')
}

/** Writes JSON with blanks wherever the grammar allows them, and with names escaped at will. */
function write(value: unknown, blanks: () => string, escape: () => boolean): string {
  const pad = (text: string): string => `${blanks()}${text}${blanks()}`
  if (Array.isArray(value)) return pad(`[${value.map(item => write(item, blanks, escape)).join(',')}]`)
  if (typeof value !== 'object' || value === null) return pad(JSON.stringify(value))
  const letter = (unit: string): string =>
    escape() ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}` : JSON.stringify(unit).slice(1, -1)
  const named = Object.entries(value).map(([key, item]) => {
    return `${pad(`"${key.split('').map(letter).join('')}"`)}:${write(item, blanks, escape)}`
  })
  return pad(`{${named.join(',')}}`)
}

const bounds = { depthMax: 256, valuesMax: 1_000 }

describe('scanObject', () => {
  test('counts the fields of all objects, duplicates included', () => {
    const fieldsOf = (text: string) => (scan(text) as ObjectScan).counts.fields
    expect(fieldsOf('{"a":{"b":[{"c":"x:y"},{}]},"a":1,"d":{"e":1,"e":2}}')).toBe(7)
    const property = fc.property(fc.object({ maxDepth: 4 }), value => {
      const text = JSON.stringify(value)
      expect(fieldsOf(text)).toBe(countFields(JSON.parse(text)))
    })
    fc.assert(property)
  })

  test('counts how often each name occurs, as it is written', () => {
    const text = '{"a":{"b":1,"b":{"\\u0062":2,"é":"b"}}}'
    const { names } = scanObject(bytes(text), { depthMax: 9, valuesMax: 99, namesMax: 9 }) as ObjectScan
    const found = [...names!].map(([written, { count }]) => [decodeName(written), count])
    expect(found).toEqual([
      ['b', 2],
      ['b', 1],
      ['é', 1],
    ])
  })

  test('refuses too many values before they are parsed, in lists, objects and at the top level', () => {
    expect(scan(`{"a":[${'0,'.repeat(999)}0]}`)).toMatchObject({ duplicates: new Set() })
    expect(scan(`{"a":[${'0,'.repeat(1_000)}0]}`)).toBe('too_many')
    expect(scan(`{"a":[${'{},'.repeat(600)}{}]}`)).toBe('too_many')
    expect(scan(`[${'[],'.repeat(600)}[]]`)).toBe('too_many')
    expect(scan(`{${Array.from({ length: 1_001 }, (_, index) => `"f${index}":0`).join()}}`)).toBe('too_many')
  })

  test('finds each top-level value of any object, however it is spaced and escaped', () => {
    const objects = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 8 })
    const seeds = fc.infiniteStream(fc.nat(7))
    fc.assert(
      fc.property(objects, seeds, (object, stream) => {
        const next = (): number => stream.next().value as number
        const blanks = (): string => ['', ' ', '\n', '\t\r ', '', '', '', ''][next()]!
        const text = write(object, blanks, () => next() === 0)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(object)))
        const { fields, duplicates } = scanValid(text)
        expect([...fields.keys()].sort()).toEqual(Object.keys(object).sort())
        expect(duplicates.size).toBe(0)
        for (const [name, value] of Object.entries(object)) {
          expect(JSON.parse(valueOf(text, name)!)).toEqual(JSON.parse(JSON.stringify(value)))
        }
      }),
    )
  })

  test('never throws and never hangs, whatever the bytes', () => {
    const likely = fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', 'a', '1', ' ') })
    fc.assert(
      fc.property(likely, text => void expect(scan(text)).toBeDefined()),
      { numRuns: 2_000 },
    )
    const bytes = fc.uint8Array({ maxLength: 300 })
    fc.assert(fc.property(bytes, raw => void expect(scanObject(Buffer.from(raw), bounds)).toBeDefined()))
  })

  test('calls no valid object malformed', () => {
    const units = fc.constantFrom('{', '}', '[', ']', '"a"', '"', ':', ',', '1', ' ')
    const likely = fc.string({ unit: units, maxLength: 12 })
    fc.assert(
      fc.property(likely, text => {
        let parsed: unknown
        try {
          parsed = JSON.parse(text)
        } catch {
          return
        }
        const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
        if (isObject) expect(typeof scan(text)).toBe('object')
        else expect(scan(text)).toBe('not_object')
      }),
      { numRuns: 5_000 },
    )
  })

  test.each([
    ['{"model":1,"model":2}', ['model']],
    ['{"model":1,"mod\\u0065l":2}', ['model']],
    ['{"\\u006dodel":1,"x":0,"model":2}', ['model']],
    ['{"a":1,"a":2,"b":1,"a":3,"b":4}', ['a', 'b']],
    ['{"a":{"model":1,"model":2},"model":3}', []],
    ['{"Model":1,"model":2}', []],
    ['{"__proto__":1,"__proto__":2}', ['__proto__']],
  ])('finds in %s the duplicates %p', (text, names) => {
    expect([...scanValid(text).duplicates]).toEqual(names)
  })

  test('returns the last one of duplicates, like JSON.parse', () => {
    expect(valueOf('{"a":1,"a":2}', 'a')).toBe('2')
  })

  test('reads a brace or a quote inside a string as text', () => {
    const text = '{"a":"}{][\\"","model":"x/\\\\","b":[{"c":"]"}]}'
    expect(valueOf(text, 'model')).toBe('"x/\\\\"')
    expect(valueOf(text, 'b')).toBe('[{"c":"]"}]')
  })

  test('finds the end of a long text, however close its escaped quotes and backslashes are', () => {
    const piece = fc.constantFrom('"', '\\', '\\"', '\n', 'a'.repeat(15), 'b'.repeat(60), 'c'.repeat(5_000))
    const run = fc.tuple(piece, fc.nat(400)).map(([text, count]) => text.repeat(text.length > 1_000 ? 1 : count))
    fc.assert(
      fc.property(fc.array(run, { maxLength: 12 }), runs => {
        const written = JSON.stringify(runs.join(''))
        expect(valueOf(`{"a":${written},"b":1}`, 'a')).toBe(written)
      }),
    )
  })

  test('counts the object itself as a level of depth', () => {
    const nested = (levels: number): string => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`
    expect(typeof scan(nested(255))).toBe('object')
    expect(scan(nested(256))).toBe('too_deep')
    expect(scan('['.repeat(256))).toBe('too_deep')
    expect(scan('['.repeat(255))).toBe('not_object')
  })

  test('refuses a million levels at any position', () => {
    const deep = '['.repeat(1_000_000)
    for (const text of [deep, `{"a":${deep}`, `{"a":{"b":[${deep}`, `{"a":"x","b":${'{"a":'.repeat(200_000)}`]) {
      expect(scan(text)).toBe('too_deep')
    }
  })

  test.each(['', ' ', '[]', 'null', '5', '"{}"', 'true', '\ufeff{}'])('recognizes that %p is not an object', text => {
    expect(scan(text)).toBe('not_object')
  })

  test.each(['{', '{"a"', '{"a":', '{"a":1', '{"a":"', '{a:1}', '{"a":1,}', '{,}', '{"a\\":1}', '{"\\x":1}', '{"a":}'])(
    'recognizes that %p is malformed',
    text => {
      expect(scan(text)).toBe('malformed')
    },
  )

  test('reads its view and not the whole buffer of the view', () => {
    const buffer = bytes('xxxx{"a":7}yyyy')
    const result = scanObject(buffer.subarray(4, 11), bounds) as ObjectScan
    expect(result.fields.get('a')).toEqual({ start: 5, end: 6 })
  })
})

describe('hasLoneSurrogate', () => {
  test('agrees with String.isWellFormed on every JSON string', () => {
    const pieces = fc.constantFrom('\\ud83d', '\\uDE00', '\\\\', '\\n', 'a', 'ud800', '\\u0041', '\\uDbFf', '😀', '\\"')
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), parts => {
        const text = `"${parts.join('')}"`
        expect([text, hasLoneSurrogate(bytes(text))]).toEqual([text, !(JSON.parse(text) as string).isWellFormed()])
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['"\\ud800"', true],
    ['"\\udc00"', true],
    ['"\\udc00\\ud800"', true],
    ['"\\ud800\\ud800\\udc00"', true],
    ['"\\ud83d\\ude00"', false],
    ['"\\\\ud800"', false],
    ['"\\\\\\ud800"', true],
    ['"\\ud83dx\\ude00"', true],
    ['{"\\ud800":1}', true],
  ])('is for %s: %p', (text, lone) => {
    expect(hasLoneSurrogate(bytes(text))).toBe(lone)
  })
})

describe('scanList', () => {
  const elementsOf = (text: string): readonly string[] | undefined =>
    scanList(bytes(text), { depthMax: 256, valuesMax: 1_000 })?.map(({ start, end }) =>
      bytes(text).subarray(start, end).toString('utf8'),
    )

  test.each([
    ['[]', []],
    [' [ ] ', []],
    ['[1]', ['1']],
    [' [1.0 ,\n"],[" , {"a":[2]},[[]],null]', ['1.0', '"],["', '{"a":[2]}', '[[]]', 'null']],
  ])('finds the elements of %s', (text, elements) => {
    expect(elementsOf(text)).toEqual(elements)
  })

  test.each(['', '{}', '1', '[', '[1', '[1,', '[,]', '["a]', '[1 2]', `[${'['.repeat(300)}`])(
    'finds none in %s',
    text => {
      expect(elementsOf(text)).toBeUndefined()
    },
  )

  test('finds the elements of any list', () => {
    const blanks = fc.constantFrom('', ' ', '\n\t')
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), blanks, (list, blank) => {
        const texts = list.map(value => JSON.stringify(value))
        expect(elementsOf(`[${blank}${texts.join(`${blank},${blank}`)}${blank}]`)).toEqual(texts)
      }),
    )
  })
})

describe('parseBoundedJson', () => {
  const deep = (open: string, levels: number, close: string): string => open.repeat(levels) + close.repeat(levels)

  test('returns the same as JSON.parse', () => {
    fc.assert(fc.property(fc.json(), text => expect(parseBoundedJson(text, 256)).toEqual(JSON.parse(text))))
    const brackets = JSON.stringify({ text: '[{"'.repeat(5_000), more: '\\'.repeat(4_000) })
    expect(parseBoundedJson(brackets, 256)).toEqual(JSON.parse(brackets))
  })

  test('throws for deep JSON before it is parsed', () => {
    expect(() => parseBoundedJson(deep('[', 70_000, ']'), 256)).toThrow('too deeply')
    expect(() => parseBoundedJson('{"a":'.repeat(70_000), 256)).toThrow('too deeply')
    expect(() => parseBoundedJson(`${' '.repeat(5_000)}${deep('[', 257, ']')}`, 256)).toThrow('too deeply')
    expect(parseBoundedJson(`${' '.repeat(5_000)}${deep('[', 256, ']')}`, 256)).toBeDefined()
    expect(() => parseBoundedJson('"'.padEnd(9_000, 'x'), 256)).toThrow(SyntaxError)
  })
})
