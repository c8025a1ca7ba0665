import { expect, test } from 'bun:test'
import { stacked } from './stacked.ts'

test('each line stands on the lines below it, also where one of them has no value', () => {
  expect(
    stacked([
      [1, 2, 3],
      [10, null, 30],
      [100, 0, null],
    ]),
  ).toEqual([
    [1, 2, 3],
    [11, 2, 33],
    [111, 2, 33],
  ])
})

test('there is a gap only where no line has a value', () => {
  expect(
    stacked([
      [null, 1, null],
      [null, null, 2],
    ]),
  ).toEqual([
    [null, 1, 0],
    [null, 1, 2],
  ])
  expect(stacked([])).toEqual([])
})
