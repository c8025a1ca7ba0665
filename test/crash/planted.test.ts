// Tests the crash harness itself: it must detect every bug that is planted into a copy of the gateway.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bugs } from './bugs.ts'
import type { GatewayCopy } from './planted.ts'
import { applied, catchBug, copyGateway, readSource } from './planted.ts'

const MS_MAX = 600_000

test.each(bugs.flatMap(({ edits }) => edits).map(edit => [edit.file, edit] as const))(
  'a bug in %s can still be planted',
  (_, edit) => {
    expect(applied(edit, readSource(edit.file))).not.toBe(readSource(edit.file))
  },
)

describe('the crash harness detects', () => {
  let copy: GatewayCopy
  beforeAll(() => (copy = copyGateway()))
  afterAll(() => copy.remove())

  test.each(bugs.map(bug => [bug.name, bug] as const))(
    '%s',
    async (_, bug) => {
      const seed = Date.now() % 1_000_000
      const caught = await catchBug(bug, seed, copy)
      expect({ ...caught, seed, seen: caught.after !== undefined }).toMatchObject({ seed, seen: true })
    },
    MS_MAX,
  )
})
