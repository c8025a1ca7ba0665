// docs/reference/config-file.md and docs/reference/weir.schema.json, from the schema of configuration files.

import { buildFileSchema } from '../src/management/config-file/file-schema.ts'
import { subjects } from '../src/management/config-file/subjects.ts'

interface SchemaNode {
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly items?: SchemaNode
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly SchemaNode[]
  readonly minimum?: number
  readonly maximum?: number
  readonly propertyNames?: SchemaNode
  readonly additionalProperties?: SchemaNode | boolean
  readonly $ref?: string
}

export const writeConfigSchema = (): string => `${JSON.stringify(buildFileSchema(), undefined, 1)}\n`

const types: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  boolean: '`true` or `false`',
  object: 'object',
  null: '`null`',
}

function typeText(schema: SchemaNode): string {
  const { type = '', items, anyOf, propertyNames, additionalProperties: values } = schema
  if (schema.$ref !== undefined) return schema.$ref.endsWith('/Secret') ? '`{env: NAME}` or `{file: path}`' : 'object'
  if (schema.enum !== undefined) return schema.enum.map(value => `\`${String(value)}\``).join(', ')
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(' or ')
  if (items !== undefined) return `list of ${typeText(items)}`
  if (propertyNames?.enum !== undefined && typeof values === 'object') {
    return `object with ${typeText(propertyNames)}: ${typeText(values)}`
  }
  const text = types[type] ?? 'any value'
  // Zod writes the bounds of safe integers for a number without bounds.
  const max = schema.maximum !== undefined && schema.maximum < Number.MAX_SAFE_INTEGER ? schema.maximum : undefined
  const min = schema.minimum !== undefined && schema.minimum > -Number.MAX_SAFE_INTEGER ? schema.minimum : undefined
  if (min === undefined) return text
  return max === undefined ? `${text}, at least ${min}` : `${text}, ${min} to ${max}`
}

/** The defaults of the optional fields of a list. */
function defaultsOf(list: string): Readonly<Record<string, unknown>> {
  const subject = subjects.find(other => other.list === list)
  if (subject === undefined || list === 'prices' || list === 'providers') return {}
  const defaults = subject.complete({ members: [] })
  return list === 'tiers' ? { ...defaults, accountQpm: '10 × qpm' } : { ...defaults, budgets: 'none' }
}

const defaultText = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text === undefined ? '' : `\`${text}\``
}

function fieldRows({ properties = {}, required = [] }: SchemaNode, list: string): readonly string[] {
  const defaults = defaultsOf(list)
  return Object.entries(properties).map(([name, schema]) => {
    const meaning = (schema.description ?? '').replaceAll('|', '\\|').replaceAll('<', '\\<')
    const byDefault = required.includes(name) ? 'required' : defaultText(defaults[name])
    return `| \`${name}\` | ${typeText(schema)} | ${byDefault} | ${meaning} |`
  })
}

function listSection([name, schema]: readonly [string, SchemaNode]): string {
  const entry = schema.items ?? schema
  const about = [schema.description, schema.items?.description].filter(text => text !== undefined)
  return `## ${name}

${about.map(text => `${text}.`).join(' ')}

| Field | Value | Default | Meaning |
|---|---|---|---|
${fieldRows(entry, name).join('\n')}
`
}

export function writeConfigFile(): string {
  const { properties = {} } = buildFileSchema() as SchemaNode
  const lists = Object.entries(properties).filter(([name]) => name !== '$schema')
  return `# Configuration file

The fields of a file for \`weir apply\` and \`WEIR_CONFIG\`; [the guide](../guides/config-file.md) explains how to use one.
This page is generated from the schema in \`src/management/config-file/file-schema.ts\` (\`npm run docs\`). The same schema
for programs is [weir.schema.json](weir.schema.json); a running gateway has it at \`/weir.schema.json\`.

The file is an object with these lists, each of which may be absent: ${lists
    .map(([name]) => `\`${name}\``)
    .filter(name => name !== '`settings`')
    .join(', ')}.
\`settings\` is a single object. A field that an entry leaves out has its default.

${lists.map(listSection).join('\n')}`
}
