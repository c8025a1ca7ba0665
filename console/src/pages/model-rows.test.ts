import { describe, expect, test } from 'bun:test'
import type { ModelRow } from './model-rows.ts'
import { filterRows, publicRows } from './model-rows.ts'

const row = (id: string, changed: Partial<ModelRow> = {}): ModelRow => ({
  id,
  provider: id.split('/')[0],
  providerName: id.split('/')[0]!,
  status: 'up',
  isFree: false,
  input: undefined,
  cacheRead: undefined,
  output: undefined,
  contextTokens: null,
  can: [],
  reads: [],
  ...changed,
})

describe('rows of models', () => {
  const rows = [
    row('b/two', { input: '10' }),
    row('a/one', { input: '2.5' }),
    row('c/none'),
    row('d/free', { isFree: true }),
  ]

  test('are sorted by numbers, and those without a value come last', () => {
    expect(filterRows(rows, { sort: 'input' }).map(({ id }) => id)).toEqual(['d/free', 'a/one', 'b/two', 'c/none'])
    expect(filterRows(rows, { sort: '-input' }).map(({ id }) => id)).toEqual(['b/two', 'a/one', 'd/free', 'c/none'])
    expect(filterRows(rows, { sort: '-id' })[0]!.id).toBe('d/free')
  })

  test('are found by text and by provider', () => {
    expect(filterRows(rows, { text: 'A/ONE' }).map(({ id }) => id)).toEqual(['a/one'])
    expect(filterRows(rows, { provider: 'b' }).map(({ id }) => id)).toEqual(['b/two'])
  })

  test('routes come first, and have no provider', () => {
    const models = {
      data: [
        {
          id: 'a/one',
          provider: 'a',
          name: 'One',
          contextTokens: 1000,
          outputTokensMax: null,
          speaks: [],
          reads: null,
          can: { think: true, tools: null, schema: false, search: null },
          price: { free: false, input: '1.00', output: '2.00', cases: [] },
        },
      ],
      names: [{ id: 'smart', contextTokens: 5, outputTokensMax: null }],
    }
    const made = publicRows(models, [{ id: 'a', name: 'Maker', status: 'degraded' }])
    expect(made.map(({ id, status }) => [id, status])).toEqual([
      ['smart', 'route'],
      ['a/one', 'degraded'],
    ])
    expect(made[1]).toMatchObject({ providerName: 'Maker', can: ['think'], input: '1.00' })
  })
})
