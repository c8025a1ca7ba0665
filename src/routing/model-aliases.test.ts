// Tests configured model names: aliases, patterns, groups, nested groups, and invalid rows.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../base/bounds.ts'
import type { MemberRow, RouteRow } from '../store/rules/rules.ts'
import { checkAliases, compileAliases } from './model-aliases.ts'

/** A member is `p/m`, `p/m:2` with a priority, or `p/m:2:5` with a priority and a weight. */
function rowOf(name: string, ...members: readonly string[]): RouteRow {
  return {
    name,
    policy: 'balanced',
    members: members.map(text => {
      const [model = '', priority = '0', weight = '1'] = text.split(':')
      return { model, priority: Number(priority), weight: Number(weight) }
    }),
  }
}

const format = ({ model, priority, weight }: MemberRow): string => `${model}:${priority}:${Number(weight.toFixed(4))}`
const resolve = (rows: readonly RouteRow[], name: string): readonly string[] | undefined =>
  compileAliases(rows).resolve(name)?.members.map(format)

describe('a configured name', () => {
  const rows = [
    rowOf('fast', 'p/small'),
    rowOf('best', 'p/big:0:3', 'q/big:0:1', 'r/big:5'),
    rowOf('all', 'best:1', 'fast:0', 'r/old:9'),
    rowOf('mixed', 'best:0:2', 'p/other:0:2'),
    rowOf('p/big', 'p/big:0:1', 'q/copy:1'),
    rowOf('gpt-*', 'p/gpt-*'),
    rowOf('gpt-5*', 'p/five', 'q/five*:1'),
    rowOf('*-latest', 'q/*'),
    rowOf('p/gpt-*', 'p/gpt-*', 'azure/gpt-*:1'),
  ]

  test.each<[string, readonly string[] | undefined]>([
    ['fast', ['p/small:0:1']],
    ['nothing', undefined],
    ['p/small', undefined],
    ['p/big', ['p/big:0:1', 'q/copy:1:1']],
    ['best', ['p/big:0:3', 'q/big:0:1', 'q/copy:1:3', 'r/big:2:1']],
    ['all', ['p/small:0:1', 'p/big:1:0.75', 'q/big:1:0.25', 'q/copy:2:1', 'r/big:3:1', 'r/old:4:1']],
    ['mixed', ['p/big:0:1.5', 'q/big:0:0.5', 'p/other:0:2', 'q/copy:1:2', 'r/big:2:2']],
    ['gpt-4', ['p/gpt-4:0:1', 'azure/gpt-4:1:1']],
    ['gpt-5', ['p/five:0:1', 'q/five:1:1']],
    ['gpt-5-mini', ['p/five:0:1', 'q/five-mini:1:1']],
    ['gpt-latest', ['q/gpt:0:1']],
    ['gpt-', ['p/gpt-:0:1', 'azure/gpt-:1:1']],
  ])('resolves to its models: %s', (name, expected) => {
    checkAliases(rows)
    expect(resolve(rows, name)).toEqual(expected)
  })

  test('has a repeated model once: in one priority its weights are added, else its first priority counts', () => {
    const twice = [rowOf('one', 'p/a:0:1', 'p/b:0:1'), rowOf('two', 'one:0:2', 'p/a:0:3', 'p/b:7')]
    expect(resolve(twice, 'two')).toEqual(['p/a:0:4', 'p/b:0:1'])
  })

  test('has its own policy, not that of a nested row', () => {
    const cheapest: RouteRow = { ...rowOf('outer', 'inner'), policy: 'cheapest' }
    expect(compileAliases([cheapest, rowOf('inner', 'p/a')]).resolve('outer')?.policy).toBe('cheapest')
  })

  test('has dollar signs and stars of the requested name as text', () => {
    expect(resolve([rowOf('x-*', 'p/*')], 'x-$&$1')).toEqual(['p/$&$1:0:1'])
    expect(resolve([rowOf('x-*', 'p/*')], 'x-*')).toEqual(['p/*:0:1'])
  })
})

describe('configured names', () => {
  const deep = Array.from({ length: 10 }, (_, index) => rowOf(`n${index}`, `n${index + 1}`))
  const twelve = Array.from({ length: 12 }, (_, index) => index)
  const layers = [0, 1, 2, 3].flatMap(layer =>
    twelve.map(row => rowOf(`${layer}-${row}`, ...twelve.map(to => `${layer + 1}-${to}`))),
  )
  const wide = Array.from({ length: 33 }, (_, index) => `p/m${index}`)

  test.each<[string, readonly RouteRow[]]>([
    [
      'The names refer to each other in a circle: a → b → c → a.',
      [rowOf('a', 'b'), rowOf('b', 'c'), rowOf('c', 'p/x', 'a:1')],
    ],
    ['The names refer to each other in a circle: a → b → a.', [rowOf('a', 'b'), rowOf('b', 'a')]],
    ['The names refer to each other in a circle: b1 → a1 → b1.', [rowOf('a*', 'b*'), rowOf('b1', 'a1')]],
    ['leads through more than 8 other names', deep],
    ['leads through more than 8 other names', [rowOf('x*', 'xx*')]],
    ['leads through more than 8 other names', [rowOf('*', ...Array.from({ length: 32 }, (_, index) => `${index}*`))]],
    ['leads to more than 1000 other names', layers],
    ['stands for 33 models; at most 32 are allowed', [rowOf('a', ...wide)]],
    ['stands for 33 models', [rowOf('a', 'b', 'p/y'), rowOf('b', ...wide.slice(1))]],
    ['must be 0 or more', [rowOf('a', 'p/x:0:-1', 'p/y:0:2')]],
    ['must be 0 or more', [rowOf('a', 'p/x:0:NaN')]],
    ['must be 0 or more', [rowOf('a', 'p/x:0:Infinity')]],
    ['add up to 0', [rowOf('a', 'p/x:0:0', 'p/y:1:1')]],
    ['add up to 0', [rowOf('a', 'p/x:0:1', 'p/y:1:0', 'p/z:1:0')]],
    ['too large', [rowOf('a', 'p/x:0:1e308', 'p/y:0:1e308')]],
    ['whole number', [rowOf('a', 'p/x:0.5')]],
    ['stands for no model', [rowOf('a')]],
    ['may contain only one *', [rowOf('a*b*', 'p/x')]],
    ['may contain only one *', [rowOf('a*', 'p/**')]],
    ['the name has none', [rowOf('a', 'p/*')]],
    ['visible ASCII characters', [rowOf('a b', 'p/x')]],
    ['visible ASCII characters', [rowOf('', 'p/x')]],
    ['visible ASCII characters', [rowOf('é', 'p/x')]],
    ['visible ASCII characters', [rowOf('x'.repeat(257), 'p/x')]],
    ['visible ASCII characters', [rowOf('a', '')]],
    ['visible ASCII characters', [rowOf('a', 'p/x\n')]],
    ['is configured twice', [rowOf('a', 'p/x'), rowOf('a', 'p/y')]],
    ['must be one of balanced, weighted', [{ ...rowOf('a', 'p/x'), policy: 'random' as 'weighted' }]],
  ])('are refused: %s', (message, rows) => {
    expect(() => checkAliases(rows)).toThrow(message)
  })

  test('are accepted with the longest chain and the widest group', () => {
    for (const rows of [[...deep.slice(0, 7), rowOf('n7', 'p/x')], [rowOf('a', ...wide.slice(1))], []]) {
      expect(() => checkAliases(rows)).not.toThrow()
    }
  })
})

test('for any rows, a name resolves to a bounded list of distinct models, none of which is a configured name', () => {
  const part = fc.constantFrom('a', 'b', 'c', 'a*', 'b*', '*', 'p/x', 'p/*', 'aa*', 'c-*')
  const member = fc.record({ model: part, priority: fc.nat(2), weight: fc.nat(3) })
  const row = fc.record({
    name: part,
    policy: fc.constant('balanced' as const),
    members: fc.array(member, { minLength: 1, maxLength: 4 }),
  })
  const rowsArb = fc.uniqueArray(row, { selector: ({ name }) => name, maxLength: 7 })
  const property = fc.property(
    rowsArb,
    fc.constantFrom('a', 'b1', 'c', 'c-a', 'aaa', 'p/x', 'zz'),
    (rows, requested) => {
      const members = compileAliases(rows).resolve(requested)?.members
      if (members === undefined) return
      expect(members.length).toBeLessThanOrEqual(bounds.routeMembersMax)
      expect(new Set(members.map(({ model }) => model)).size).toBe(members.length)
      const priorities = [...new Set(members.map(({ priority }) => priority))]
      expect(priorities).toEqual(priorities.map((_, index) => index))
      const refused = (() => {
        try {
          checkAliases(rows)
          return false
        } catch {
          return true
        }
      })()
      if (!refused && rows.some(({ name }) => name === requested)) expect(members.length).toBeGreaterThan(0)
    },
  )
  fc.assert(property, { numRuns: 2_000 })
})
