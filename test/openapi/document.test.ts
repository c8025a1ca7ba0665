// The OpenAPI document is complete, consistent, and matches the existing endpoints.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { openApiPath, writeOpenApi } from '../../scripts/write-docs.ts'
import { errorRows } from '../../src/base/errors.ts'
import type { Content } from '../../src/management/openapi/operation.ts'
import { operationErrors } from '../../src/management/openapi/operation-errors.ts'
import { matchesEndpoint } from '../../src/server/dispatch.ts'
import type { Endpoint } from '../../src/server/endpoint.ts'
import type { EndpointParts } from '../../src/server/endpoints.ts'
import { buildEndpoints } from '../../src/server/endpoints.ts'
import { misfits } from '../support/json-schema.ts'
import { document, findSchema, lookUp, operations, walk } from './described.ts'

test('docs/reference/openapi.json is what the rows say (npm run docs writes it)', async () => {
  expect(readFileSync(openApiPath, 'utf8')).toBe(await writeOpenApi())
})

/** The parts are only used when an endpoint answers. */
const endpoints = buildEndpoints({} as EndpointParts)
const managed = ['/api/web/*', '/api/auth/*']

/** Finds the endpoint as dispatch does: an exact path wins over one that ends in a star. */
function endpointOf(method: string, path: string): Endpoint | undefined {
  const exact = endpoints.filter(endpoint => endpoint.path === path)
  const matching =
    exact.length > 0 ? exact : endpoints.filter(one => one.path.endsWith('/*') && matchesEndpoint(path, one))
  return matching.find(endpoint => endpoint.method === method)
}

const filled = (path: string): string => path.replaceAll(/\{\w+\}/g, 'something')

describe('endpoints', () => {
  test('that are described exist, and need the described credential', () => {
    for (const { name, method, path, operation } of operations) {
      const endpoint = endpointOf(method, filled(path))
      expect([name, endpoint !== undefined]).toEqual([name, true])
      const [scheme] = operation.security
      const auth = scheme === undefined ? 'nobody' : 'token' in scheme ? 'token' : 'key'
      expect([name, auth]).toEqual([name, endpoint!.auth])
    }
  })

  test('that exist are described', () => {
    const described = new Set(operations.map(({ method, path }) => endpointOf(method, filled(path))))
    const undescribed = endpoints.filter(endpoint => !described.has(endpoint) && !managed.includes(endpoint.path))
    expect(undescribed.map(({ method, path, ending }) => `${method} ${path}${ending ?? ''}`)).toEqual([])
  })
})

describe('the document', () => {
  test('has only references to existing parts of itself', () => {
    const refs = [...walk(document)].flatMap(([path, { $ref }]) => (typeof $ref === 'string' ? [[path, $ref]] : []))
    expect(refs.length).toBeGreaterThan(100)
    for (const [path, ref] of refs) expect([path, typeof lookUp(ref!)]).toEqual([path, 'object'])
  })

  test('uses all of its named parts', () => {
    const used = new Set([...walk(document)].flatMap(([, { $ref }]) => (typeof $ref === 'string' ? [$ref] : [])))
    const { schemas = {}, responses = {}, headers = {} } = document.components
    const named = Object.entries({ schemas, responses, headers }).flatMap(([kind, own]) =>
      Object.keys(own).map(name => `#/components/${kind}/${name}`),
    )
    expect(named.filter(ref => !used.has(ref))).toEqual([])
  })

  test("names each operation once, with a name that can be a function's", () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]*$/)
  })

  test('describes each of its sections, and has no empty one', () => {
    const used = new Set(operations.flatMap(({ operation }) => operation.tags))
    expect(document.tags.map(({ name }) => name).sort()).toEqual([...used].sort())
    for (const { name, description } of document.tags) expect([name, description.length > 10]).toEqual([name, true])
    const unnamed = document.tags.filter(({ description }) => description.startsWith('What is under'))
    expect(unnamed).toEqual([]) // give it a line in src/management/openapi/tags.ts
  })

  test('describes the parameters of each path, and no others', () => {
    for (const { name, path, operation } of operations) {
      const holes = [...path.matchAll(/\{(\w+)\}/g)].map(([, hole]) => hole!)
      const parameters = operation.parameters.filter(one => one.in === 'path').map(one => one.name)
      expect([name, parameters.sort()]).toEqual([name, holes.sort()])
    }
  })

  test('has every error code, and no unknown one', () => {
    const codes = new Set([...walk(document)].flatMap(([, one]) => (one['x-weir-codes'] as string[] | undefined) ?? []))
    // Errors that no path has cannot be described at one.
    const pathless = ['path_unknown', 'method_not_allowed', 'upgrade_refused']
    expect([...codes, ...pathless].sort()).toEqual(Object.keys(errorRows).sort())
  })

  test('describes refusals of existing operations only', () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(Object.keys(operationErrors).filter(id => !ids.includes(id))).toEqual([])
  })

  test('forbids unknown fields in every body of the management interface', () => {
    for (const { name, operation } of operations.filter(({ path }) => /^\/api\/(web|auth)\//.test(path))) {
      const schema = operation.requestBody?.content['application/json']?.schema
      if (schema === undefined) continue
      const whole = typeof schema.$ref === 'string' ? findSchema(schema.$ref) : schema
      const forms = (whole.oneOf ?? whole.anyOf ?? [whole]) as readonly (typeof whole)[]
      for (const { additionalProperties } of forms) expect([name, additionalProperties]).toEqual([name, false])
    }
  })

  test('has only examples that fit their schemas', () => {
    const contents = [...walk(document)].filter(([, { schema, examples }]) => schema && examples)
    expect(contents.length).toBeGreaterThan(60)
    for (const [path, content] of contents as [string, unknown][]) {
      const { schema, examples = {} } = content as Content
      if (Array.isArray(examples)) continue
      for (const [name, { value }] of Object.entries(examples)) {
        expect([path, name, misfits(value, schema, findSchema)]).toEqual([path, name, []])
      }
    }
  })
})
