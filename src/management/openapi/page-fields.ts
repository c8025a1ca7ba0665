// Shows the fields of a schema as rows: name, type and description.

import type { JsonSchema } from './operation.ts'
import { escapeHtml, markCode } from './page-text.ts'

export type SchemaResolver = (schema: JsonSchema) => JsonSchema

interface Row {
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly about: string
}

const DEPTH_MAX = 4
const ROWS_MAX = 80

/** Required fields are marked in requests only. */
export function fieldsTable(
  schema: JsonSchema,
  resolve: SchemaResolver,
  direction: 'request' | 'answer' = 'request',
): string {
  const rows = rowsOf(resolve(schema), resolve, '', 0).slice(0, ROWS_MAX)
  if (rows.length === 0) return ''
  const cells = rows.map(row => fieldRow({ ...row, required: row.required && direction === 'request' }))
  return `<dl class="fields">${cells.join('')}</dl>`
}

export function fieldRow({ name, type, required, about }: Row): string {
  const star = required ? '<b title="required">*</b>' : ''
  const text = about === '' ? '' : `<p>${markCode(about)}</p>`
  return `<div><dt><code>${escapeHtml(name)}</code>${star}</dt><dd><span>${escapeHtml(type)}</span>${text}</dd></div>`
}

function rowsOf(schema: JsonSchema, resolve: SchemaResolver, prefix: string, depth: number): readonly Row[] {
  const inner = innerOf(schema, resolve)
  if (inner === undefined || depth > DEPTH_MAX) return []
  const { object, mark } = inner
  const required = (object.required as readonly string[] | undefined) ?? []
  return Object.entries(object.properties as Readonly<Record<string, JsonSchema>>).flatMap(([name, field]) => {
    const fullName = `${prefix}${mark}${prefix === '' && mark === '' ? '' : '.'}${name}`
    const resolved = resolve(field)
    const about = String(field.description ?? resolved.description ?? '')
    const row = { name: fullName, type: typeText(field, resolve), required: required.includes(name), about }
    return [row, ...rowsOf(resolved, resolve, fullName, depth + 1)]
  })
}

/** The object whose fields are shown: the schema itself, or the items of a list, or the first choice with fields. */
function innerOf(schema: JsonSchema, resolve: SchemaResolver): { object: JsonSchema; mark: string } | undefined {
  if (schema.properties !== undefined) return { object: schema, mark: '' }
  if (schema.items !== undefined) {
    const found = innerOf(resolve(schema.items as JsonSchema), resolve)
    return found && { object: found.object, mark: `[]${found.mark}` }
  }
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined
  for (const choice of choices ?? []) {
    const found = innerOf(resolve(choice), resolve)
    if (found !== undefined) return found
  }
  return undefined
}

export function typeText(unresolved: JsonSchema, resolve: SchemaResolver): string {
  const schema = resolve(unresolved)
  const { type, items, format, enum: allowed, const: fixed } = schema
  if (fixed !== undefined) return JSON.stringify(fixed)
  if (Array.isArray(allowed)) return allowed.map(value => JSON.stringify(value)).join(' | ')
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined
  if (choices !== undefined) return [...new Set(choices.map(choice => typeText(choice, resolve)))].join(' or ')
  const types = [(type ?? 'anything') as string | readonly string[]].flat()
  return types
    .map(name => {
      if (name === 'array') {
        const itemType = items === undefined ? 'anything' : typeText(items as JsonSchema, resolve)
        return `list of ${itemType}`
      }
      return name === 'string' && typeof format === 'string' ? format : (words[name] ?? name)
    })
    .join(' or ')
    .concat(rangeText(schema))
}

const words: Readonly<Record<string, string>> = { string: 'text', boolean: 'true or false', integer: 'whole number' }

function rangeText({ minimum, maximum, maxLength, default: defaultValue }: JsonSchema): string {
  const parts = [
    minimum !== undefined && maximum !== undefined ? `${String(minimum)} to ${String(maximum)}` : '',
    minimum !== undefined && maximum === undefined && minimum !== 0 ? `from ${String(minimum)}` : '',
    maxLength !== undefined ? `at most ${String(maxLength)} characters` : '',
    defaultValue !== undefined ? `default ${JSON.stringify(defaultValue)}` : '',
  ].filter(part => part !== '')
  return parts.length === 0 ? '' : `, ${parts.join(', ')}`
}
