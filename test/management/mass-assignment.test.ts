// Nobody sets what a body has no place for, whatever it is called: every field of every body and every column of every
// table is tried on every endpoint, by everybody who may ask it. What a role may not set, it may not set either.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { SiteRole } from '../../src/management/actor.ts'
import { siteRoles } from '../../src/management/actor.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import { findSchema, operations, walk } from '../openapi/described.ts'
import { openDatabase } from '../support/database.ts'
import type { Schema } from '../support/json-schema.ts'
import type { Everybody } from './matrix/everybody.ts'
import { startEverybody } from './matrix/everybody.ts'
import type { Things } from './matrix/things.ts'
import { buildThings } from './matrix/things.ts'
import type { Somebody, TokenName } from './matrix/verdicts.ts'
import { everybody, expectedRows, nameOf, tokens } from './matrix/verdicts.ts'

let all: Everybody
let things: Things

beforeAll(async () => {
  all = await startEverybody()
  things = buildThings(all)
})
afterAll(() => all.stop())

const writing = describedEndpoints.filter(({ body }) => body !== undefined)

/** Of a body, by its description. */
function schemaOf(endpoint: WebEndpoint): Schema {
  const path = endpoint.path.replaceAll('*}', '}')
  const found = operations.find(one => one.method === endpoint.method && one.path === path)
  const schema = found!.operation.requestBody!.content['application/json']!.schema
  return typeof schema.$ref === 'string' ? findSchema(schema.$ref) : schema
}

const fieldsOf = (endpoint: WebEndpoint): readonly string[] =>
  Object.keys((schemaOf(endpoint).properties ?? {}) as Schema)

function columnsOf(folder: string): readonly string[] {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  const rows = db
    .query("SELECT DISTINCT p.name FROM sqlite_schema s, pragma_table_info(s.name) p WHERE s.type IN ('table', 'view')")
    .all() as { name: string }[]
  db.close()
  return rows.map(({ name }) => name)
}

const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const prototypes = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']
const grabs = ['isAdmin', 'admin', 'owner', 'permissions', 'scope', 'actor', 'by', 'siteRole', 'rank', 'personId']

/** Every name that means something somewhere. */
const names = (): readonly string[] => {
  const columns = columnsOf(all.harness.folder)
  return [...new Set([...columns, ...columns.map(camel), ...writing.flatMap(fieldsOf), ...prototypes, ...grabs])]
}

describe('every body', () => {
  /** Maps whose names are the caller's: what they are about is checked elsewhere, and they set no column. */
  const maps = ['definition', 'headers', 'parameters', 'set', 'default', 'models/items']

  test('is closed, at every depth', () => {
    for (const endpoint of writing) {
      for (const [path, schema] of walk(schemaOf(endpoint))) {
        if (schema.type !== 'object') continue
        const isMap = [...maps, 'additionalProperties'].some(name => path.endsWith(`/${name}`))
        const closed = isMap || schema.additionalProperties === false
        expect([nameOf(endpoint), path, closed]).toEqual([nameOf(endpoint), path, true])
      }
    }
  })

  test('has no place for any other name', async () => {
    const foreign = names()
    expect(foreign.length).toBeGreaterThan(150)
    for (const endpoint of writing) {
      const body = await things.bodyFor(endpoint)
      const own = fieldsOf(endpoint)
      for (const name of foreign.filter(one => !own.includes(one))) {
        const text = `{${JSON.stringify(name)}:1,${JSON.stringify(body).slice(1)}`.replace(/,}$/, '}')
        const { success, error } = endpoint.body!.safeParse(JSON.parse(text))
        const unknown = error?.issues.some(issue => issue.code === 'unrecognized_keys' && issue.keys.includes(name))
        expect([nameOf(endpoint), name, success, unknown]).toEqual([nameOf(endpoint), name, false, true])
      }
    }
  })
})

/** Everything that is kept, but for when somebody was last seen. */
function allRows(folder: string): string {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true, safeIntegers: true })
  const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all()
  const told = (tables as { name: string }[]).map(({ name }) => {
    const rows = db.query('SELECT * FROM '.concat(name)).all() as Record<string, unknown>[]
    const kept = rows.map(({ seen_ms: _, last_seen_ms: __, used_ms: ___, ...row }) => row)
    return [name, kept]
  })
  db.close()
  return JSON.stringify(told, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

const mayAsk = (endpoint: WebEndpoint): readonly Somebody[] =>
  everybody.filter(somebody => expectedRows.get(nameOf(endpoint))![somebody] === 'may')

const dangerous: readonly string[] = [
  ...['role', 'balance', 'account_id', 'accountId', 'disabled', 'version', 'id', 'digest', 'personId', 'isAdmin'],
]

describe('over the wire', () => {
  test('a field that there is not is named, and nothing is done', async () => {
    const prepared = []
    for (const endpoint of writing) {
      prepared.push([endpoint, await things.pathFor(endpoint), await things.bodyFor(endpoint)] as const)
    }
    const before = allRows(all.harness.folder)
    for (const [endpoint, path, body] of prepared) {
      const own = fieldsOf(endpoint)
      for (const somebody of mayAsk(endpoint)) {
        for (const name of dangerous.filter(one => !own.includes(one)).slice(0, 4)) {
          const told = await all.ask[somebody](endpoint.method, path, { ...body, [name]: 1 })
          expect([nameOf(endpoint), somebody, name, told.status, told.error.param]).toEqual([
            ...[nameOf(endpoint), somebody, name, 400, name],
          ] as never)
        }
      }
    }
    expect(allRows(all.harness.folder)).toBe(before)
  })

  const reserving = writing.flatMap(endpoint =>
    Object.entries(endpoint.reserved ?? {}).map(
      ([field, least]) => [nameOf(endpoint), field, least, endpoint] as const,
    ),
  )

  test.each(reserving)('%s: %s is for %ss', async (name, field, least, endpoint) => {
    const isOperators = least === 'operator'
    const lower = mayAsk(endpoint).filter(somebody => isOperators || rankOf(somebody) < siteRoles.indexOf(least))
    const value = things.valueFor(schemaOf(endpoint), field)
    const path = await things.pathFor(endpoint)
    const body = await things.bodyFor(endpoint)
    const before = allRows(all.harness.folder)
    for (const somebody of lower) {
      const told = await all.ask[somebody](endpoint.method, path, { ...body, [field]: value })
      expect([name, somebody, told.status, told.error]).toMatchObject([
        ...[name, somebody, 403, { code: 'role_too_low', param: field }],
      ] as never)
    }
    expect(allRows(all.harness.folder)).toBe(before)
    if (isOperators) return
    const told = await all.ask[least as Somebody](endpoint.method, path, { ...body, [field]: value })
    expect([name, least, told.status === 403]).toEqual([name, least, false])
  })
})

const rankOf = (somebody: Somebody): number => {
  const at = siteRoles.indexOf((tokens[somebody as TokenName] ?? somebody) as SiteRole)
  return at < 0 ? 0 : at
}
