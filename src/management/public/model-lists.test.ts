import { expect, test } from 'bun:test'
import type { ListShape } from './model-lists.ts'
import { listShapes } from './model-lists.ts'

test.each(Object.entries(listShapes))('%s: a model is written once for all lists', (_dialect, shape: ListShape) => {
  let reads = 0
  const model = {
    id: 'lake/"deep"',
    provider: 'lake',
    get name() {
      reads++
      return 'Deep'
    },
  }
  const other = { id: 'lake/wide', provider: 'lake', name: 'Wide' }
  const list = (models: readonly (typeof other)[]): unknown => JSON.parse(shape.list(models, () => null))
  expect(JSON.stringify(list([model, other]))).toContain('Wide')
  expect(list([model])).toEqual(list([model]))
  shape.one(model)
  expect(reads).toBe(1)
})
