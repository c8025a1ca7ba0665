// No body sets a field that its schema does not have: every field of every body and every column of every table is
// tried on every endpoint, by every actor who may use it. Fields that a role may not set are tried, too.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { SiteRole } from '../../src/management/actor.ts'
import { siteRoles } from '../../src/management/actor.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import { findSchema, operations, walk } from '../openapi/described.ts'
import { openDatabase } from '../support/database.ts'
import type { Schema } from '../support/json-schema.ts'
import type { Fixtures } from './matrix/fixtures.ts'
import { buildFixtures } from './matrix/fixtures.ts'
import type { TestSite } from './matrix/site.ts'
import { startTestSite } from './matrix/site.ts'
import type { ActorName, TokenName } from './matrix/verdicts.ts'
import { actorNames, expectedRows, nameOf, tokenRights } from './matrix/verdicts.ts'

let site: TestSite
let fixtures: Fixtures

beforeAll(async () => {
  site = await startTestSite()
  fixtures = buildFixtures(site)
})
afterAll(() => site.stop())

/** The endpoints that write what their bodies say. */
const writing = describedEndpoints.filter(({ body, onlyReads }) => body !== undefined && !onlyReads)

/** The schema of the endpoint's body. */
function schemaOf(endpoint: WebEndpoint): Schema {
  const path = endpoint.path.replaceAll('*}', '}')
  const described = operations.find(one => one.method === endpoint.method && one.path === path)
  const schema = described!.operation.requestBody!.content['application/json']!.schema
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

/** Every name that is a field or a column somewhere. */
const names = (): readonly string[] => {
  const columns = columnsOf(site.harness.folder)
  return [...new Set([...columns, ...columns.map(camel), ...writing.flatMap(fieldsOf), ...prototypes, ...grabs])]
}

describe('every body', () => {
  /** Maps whose names the caller chooses: their values are checked elsewhere, and they set no column. */
  const maps = ['definition', 'headers', 'parameters', 'set', 'default', 'models/items']

  test('is closed at every depth', () => {
    for (const endpoint of writing) {
      for (const [path, schema] of walk(schemaOf(endpoint))) {
        if (schema.type !== 'object') continue
        const isMap = [...maps, 'additionalProperties'].some(name => path.endsWith(`/${name}`))
        const closed = isMap || schema.additionalProperties === false
        expect([nameOf(endpoint), path, closed]).toEqual([nameOf(endpoint), path, true])
      }
    }
  })

  test('refuses any other name', async () => {
    const foreign = names()
    expect(foreign.length).toBeGreaterThan(150)
    for (const endpoint of writing) {
      const body = await fixtures.bodyFor(endpoint)
      const ownFields = fieldsOf(endpoint)
      for (const name of foreign.filter(one => !ownFields.includes(one))) {
        const text = `{${JSON.stringify(name)}:1,${JSON.stringify(body).slice(1)}`.replace(/,}$/, '}')
        const { success, error } = endpoint.body!.safeParse(JSON.parse(text))
        const unknown = error?.issues.some(issue => issue.code === 'unrecognized_keys' && issue.keys.includes(name))
        expect([nameOf(endpoint), name, success, unknown]).toEqual([nameOf(endpoint), name, false, true])
      }
    }
  })
})

/** Everything that is stored, except for when somebody was last seen. */
function allRows(folder: string): string {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true, safeIntegers: true })
  const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all()
  const contents = (tables as { name: string }[]).map(({ name }) => {
    const rows = db.query('SELECT * FROM '.concat(name)).all() as Record<string, unknown>[]
    const stableRows = rows.map(({ seen_ms: _, last_seen_ms: __, used_ms: ___, ...row }) => textOf(row))
    return [name, stableRows.sort()]
  })
  db.close()
  return JSON.stringify(contents)
}

const textOf = (row: object): string =>
  JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))

const allowedActors = (endpoint: WebEndpoint): readonly ActorName[] =>
  actorNames.filter(actor => expectedRows.get(nameOf(endpoint))![actor] === 'may')

const dangerous: readonly string[] = [
  ...['role', 'balance', 'account_id', 'accountId', 'disabled', 'version', 'id', 'digest', 'personId', 'isAdmin'],
]

describe('over HTTP', () => {
  test('an unknown field is named in the error, and nothing is done', async () => {
    const prepared = []
    for (const endpoint of writing) {
      prepared.push([endpoint, await fixtures.pathFor(endpoint), await fixtures.bodyFor(endpoint)] as const)
    }
    const before = allRows(site.harness.folder)
    for (const [endpoint, path, body] of prepared) {
      const ownFields = fieldsOf(endpoint)
      for (const actor of allowedActors(endpoint)) {
        for (const name of dangerous.filter(one => !ownFields.includes(one)).slice(0, 4)) {
          const answer = await site.ask[actor](endpoint.method, path, { ...body, [name]: 1 })
          expect([nameOf(endpoint), actor, name, answer.status, answer.error.param]).toEqual([
            ...[nameOf(endpoint), actor, name, 400, name],
          ] as never)
        }
      }
    }
    expect(allRows(site.harness.folder)).toBe(before)
  })

  const reserving = writing.flatMap(endpoint =>
    Object.entries(endpoint.reserved ?? {}).map(
      ([field, least]) => [nameOf(endpoint), field, least, endpoint] as const,
    ),
  )

  test.each(reserving)('%s: %s may be set by %s and above only', async (name, field, least, endpoint) => {
    const isOperators = least === 'operator'
    const lower = allowedActors(endpoint).filter(actor => isOperators || rankOf(actor) < siteRoles.indexOf(least))
    const value = fixtures.valueFor(schemaOf(endpoint), field)
    const path = await fixtures.pathFor(endpoint)
    const body = await fixtures.bodyFor(endpoint)
    const before = allRows(site.harness.folder)
    for (const actor of lower) {
      const answer = await site.ask[actor](endpoint.method, path, { ...body, [field]: value })
      expect([name, actor, answer.status, answer.error]).toMatchObject([
        ...[name, actor, 403, { code: 'role_too_low', param: field }],
      ] as never)
    }
    expect(allRows(site.harness.folder)).toBe(before)
    if (isOperators) return
    const answer = await site.ask[least as ActorName](endpoint.method, path, { ...body, [field]: value })
    expect([name, least, answer.status === 403]).toEqual([name, least, false])
  })
})

const rankOf = (actor: ActorName): number => {
  const at = siteRoles.indexOf((tokenRights[actor as TokenName] ?? actor) as SiteRole)
  return at < 0 ? 0 : at
}
