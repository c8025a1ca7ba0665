// Two things with the same number would wait for each other without need.

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as locks from './advisory-locks.ts'

test('every advisory lock has a number of its own', () => {
  const numbers = Object.values(locks)
  expect(new Set(numbers).size).toBe(numbers.length)
})

test('advisory locks have their numbers from one file, and in SQL the same', () => {
  const files = readdirSync(import.meta.dir, { recursive: true, encoding: 'utf8' }).filter(
    name => /\.(ts|sql)$/.test(name) && !name.startsWith('advisory-locks'),
  )
  const found = files.flatMap(name => {
    const text = readFileSync(join(import.meta.dir, name), 'utf8')
    return Array.from(text.matchAll(/advisory_xact_lock(?:_shared)?\((\d+)/g), ([, number]) => `${name} ${number}`)
  })
  const inSql = ['0003-processes', '0021-epochs'].map(name => `migrations/${name}.sql ${locks.REGISTER_LOCK}`)
  expect(found.sort()).toEqual(inSql)
})
