// The fields of a schema as rows of a table: what each is called, what it is, and what it is for.

import type { JsonSchema } from './operation.ts'
import { escaped, marked } from './page-text.ts'

export type Resolve = (schema: JsonSchema) => JsonSchema

interface Row {
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly about: string
}

const DEPTH_MAX = 4
const ROWS_MAX = 80

/** What is shown need not be told to be there. */
export function fieldsTable(schema: JsonSchema, resolve: Resolve, is: 'asked' | 'shown' = 'asked'): string {
  const rows = rowsOf(resolve(schema), resolve, { prefix: '', depth: 0 }).slice(0, ROWS_MAX)
  if (rows.length === 0) return ''
  const cells = rows.map(row => fieldRow({ ...row, required: row.required && is === 'asked' }))
  return `<dl class="fields">${cells.join('')}</dl>`
}

export function fieldRow({ name, type, required, about }: Row): string {
  const must = required ? '<b title="must be there">*</b>' : ''
  const told = about === '' ? '' : `<p>${marked(about)}</p>`
  return `<div><dt><code>${escaped(name)}</code>${must}</dt><dd><span>${escaped(type)}</span>${told}</dd></div>`
}

interface Place {
  readonly prefix: string
  readonly depth: number
}

function rowsOf(schema: JsonSchema, resolve: Resolve, { prefix, depth }: Place): readonly Row[] {
  const inner = innerOf(schema, resolve)
  if (inner === undefined || depth > DEPTH_MAX) return []
  const { object, mark } = inner
  const required = (object.required as readonly string[] | undefined) ?? []
  return Object.entries(object.properties as Readonly<Record<string, JsonSchema>>).flatMap(([name, field]) => {
    const whole = `${prefix}${mark}${prefix === '' && mark === '' ? '' : '.'}${name}`
    const told = resolve(field)
    const about = String(field.description ?? told.description ?? '')
    const row = { name: whole, type: typeText(field, resolve), required: required.includes(name), about }
    return [row, ...rowsOf(told, resolve, { prefix: whole, depth: depth + 1 })]
  })
}

/** The object whose fields are told: itself, or what a list or a choice holds. */
function innerOf(schema: JsonSchema, resolve: Resolve): { object: JsonSchema; mark: string } | undefined {
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

export function typeText(given: JsonSchema, resolve: Resolve): string {
  const schema = resolve(given)
  const { type, items, format, enum: allowed, const: fixed } = schema
  if (fixed !== undefined) return JSON.stringify(fixed)
  if (Array.isArray(allowed)) return allowed.map(one => JSON.stringify(one)).join(' | ')
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined
  if (choices !== undefined) return [...new Set(choices.map(one => typeText(one, resolve)))].join(' or ')
  const types = [(type ?? 'anything') as string | readonly string[]].flat()
  return types
    .map(one => {
      if (one === 'array') {
        const of = items === undefined ? 'anything' : typeText(items as JsonSchema, resolve)
        return `list of ${of}`
      }
      return one === 'string' && typeof format === 'string' ? format : (words[one] ?? one)
    })
    .join(' or ')
    .concat(rangeText(schema))
}

const words: Readonly<Record<string, string>> = { string: 'text', boolean: 'true or false', integer: 'whole number' }

function rangeText({ minimum, maximum, maxLength, default: otherwise }: JsonSchema): string {
  const told = [
    minimum !== undefined && maximum !== undefined ? `${String(minimum)} to ${String(maximum)}` : '',
    minimum !== undefined && maximum === undefined && minimum !== 0 ? `from ${String(minimum)}` : '',
    maxLength !== undefined ? `at most ${String(maxLength)} characters` : '',
    otherwise !== undefined ? `otherwise ${JSON.stringify(otherwise)}` : '',
  ].filter(part => part !== '')
  return told.length === 0 ? '' : `, ${told.join(', ')}`
}
