// Writes console/src/api/types.ts: the types of the management API for the console, from docs/reference/openapi.json.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly (string | number | boolean | null)[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly items?: Schema | boolean
  readonly prefixItems?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>

interface Answer {
  readonly content?: Content
}

interface Operation {
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly schema: Schema
  }[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, Answer | { readonly $ref: string }>>
  readonly 'x-weir-roles'?: unknown
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Answer>>
  }
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const USED = /^\/api\/(web|auth|public)\//

/** The schema `Record` would hide the type `Record` of TypeScript. */
const typeName = (name: string): string => (name === 'Record' ? 'CallRecord' : name.replace(/\W/g, ''))
const nameIn = (ref: string): string => ref.split('/').at(-1)!
const field = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`)
const literal = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : String(value)
const list = (inner: string): string =>
  `readonly ${/[ |&]/.test(inner) && !/^\{[^{}]*\}$/.test(inner) ? `(${inner})` : inner}[]`

function typeOf(schema: Schema | boolean | undefined): string {
  if (schema === undefined || typeof schema === 'boolean') return 'unknown'
  if (schema.$ref !== undefined) return typeName(nameIn(schema.$ref))
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
  const several = schema.anyOf ?? schema.oneOf
  if (several !== undefined) return [...new Set(several.map(typeOf))].join(' | ')
  if (schema.allOf !== undefined) return schema.allOf.map(typeOf).join(' & ')
  if (typeof schema.type === 'object') return schema.type.map(type => typeOf({ ...schema, type })).join(' | ')
  if (schema.type === 'integer' || schema.type === 'number') return 'number'
  if (schema.type === 'string' || schema.type === 'boolean' || schema.type === 'null') return schema.type
  if (schema.type === 'array') {
    if (schema.prefixItems !== undefined) return `readonly [${schema.prefixItems.map(typeOf).join(', ')}]`
    return list(typeOf(schema.items))
  }
  if (schema.properties !== undefined) return objectOf(schema)
  if (schema.type === 'object') return `Readonly<Record<string, ${typeOf(schema.additionalProperties ?? true)}>>`
  return 'unknown'
}

function objectOf({ properties = {}, required = [] }: Schema): string {
  const fields = Object.entries(properties).map(
    ([name, schema]) => `readonly ${field(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`,
  )
  return fields.length === 0 ? 'Readonly<Record<string, never>>' : `{ ${fields.join('; ')} }`
}

function parametersOf({ parameters = [] }: Operation, place: string): string {
  const found = parameters.filter(parameter => parameter.in === place)
  if (found.length === 0) return 'undefined'
  const isOptional = ({ required }: (typeof found)[number]) => place === 'query' && !required
  return `{ ${found.map(one => `readonly ${field(one.name)}${isOptional(one) ? '?' : ''}: ${typeOf(one.schema)}`).join('; ')} }`
}

const jsonOf = (content: Content | undefined): string =>
  content?.['application/json'] === undefined ? 'undefined' : typeOf(content['application/json'].schema)

/** The successful answer. Several operations may share one by a reference. */
function answerOf({ responses }: Operation, { components }: Document): Answer {
  const status = Object.keys(responses).find(code => code.startsWith('2'))
  const answer = status === undefined ? {} : responses[status]!
  return '$ref' in answer ? components.responses[nameIn(answer.$ref)]! : answer
}

const isOptional = (type: string): boolean => !/readonly (\w+|'[^']+'): /.test(type)

/** The parts of a request: `params`, `query` and `body`. A part without required fields may be left out. */
function requestOf(operation: Operation): string {
  const body = jsonOf(operation.requestBody?.content)
  const parts = [
    ['params', parametersOf(operation, 'path')],
    ['query', parametersOf(operation, 'query')],
    ['body', body],
  ].filter(([, type]) => type !== 'undefined')
  const isLeftOut = (name: string, type: string) =>
    name === 'body' ? operation.requestBody?.required === false : isOptional(type)
  return parts.length === 0
    ? 'object'
    : `{ ${parts.map(([name, type]) => `readonly ${name}${isLeftOut(name!, type!) ? '?' : ''}: ${type}`).join('; ')} }`
}

/** All schemas that the operations use, directly or through others. */
function namesIn(value: unknown, schemas: Document['components']['schemas'], found: Set<string>): Set<string> {
  if (typeof value !== 'object' || value === null) return found
  for (const [key, inner] of Object.entries(value)) {
    if (key !== '$ref' || typeof inner !== 'string' || !inner.startsWith('#/components/schemas/')) {
      namesIn(inner, schemas, found)
    } else if (!found.has(nameIn(inner))) {
      found.add(nameIn(inner))
      namesIn(schemas[nameIn(inner)], schemas, found)
    }
  }
  return found
}

function consoleTypes(document: Document): string {
  const operations = Object.entries(document.paths)
    .filter(([path]) => USED.test(path))
    .flatMap(([path, methods]) =>
      METHODS.filter(method => methods[method] !== undefined).map(
        method => [`${method.toUpperCase()} ${path}`, methods[method]!] as const,
      ),
    )
  const { schemas } = document.components
  const names = [
    ...namesIn(
      operations.map(([, operation]) => [operation.parameters, operation.requestBody, answerOf(operation, document)]),
      schemas,
      new Set(),
    ),
  ].sort()
  const types = names.map(name => `export type ${typeName(name)} = ${typeOf(schemas[name])}\n`)
  const rows = operations.map(
    ([key, operation]) => `  '${key}': {
    request: ${requestOf(operation)}
    answer: ${jsonOf(answerOf(operation, document).content)}
  }`,
  )
  const roles = operations.map(
    ([key, operation]) => `  '${key}': ${JSON.stringify(operation['x-weir-roles'] ?? null)},`,
  )
  return `// Written by scripts/write-console-types.ts from docs/reference/openapi.json. Do not edit.

${types.join('\n')}
export interface Operations {
${rows.join('\n')}
}

/** The roles that may use each operation; null for everybody who is signed in. */
export const operationRoles = {
${roles.join('\n')}
} as const
`
}

const root = join(import.meta.dir, '..')
export const consoleTypesPath = join(root, 'console', 'src', 'api', 'types.ts')

/** The file, in the format of all sources. `openApi`: the text of the OpenAPI document. */
export function writeConsoleTypes(openApi: string): string {
  const { success, stdout, stderr } = Bun.spawnSync(
    [join(root, 'node_modules', '.bin', 'biome'), 'format', `--stdin-file-path=${consoleTypesPath}`],
    { cwd: root, stdin: Buffer.from(consoleTypes(JSON.parse(openApi) as Document)) },
  )
  if (!success) throw new Error(stderr.toString())
  return stdout.toString()
}

if (import.meta.main) {
  const openApi = readFileSync(join(root, 'docs', 'reference', 'openapi.json'), 'utf8')
  writeFileSync(consoleTypesPath, writeConsoleTypes(openApi))
}
