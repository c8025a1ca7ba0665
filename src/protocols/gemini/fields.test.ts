// Tests that the field tables know every field of Google's own types, so that a field of a new version is noticed.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { FieldTable } from '../request/fields.ts'
import {
  callFields,
  configFields,
  functionCallingFields,
  functionFields,
  partFields,
  partKinds,
  requestFields,
  resultFields,
  searchFields,
  thinkingFields,
  toolConfigFields,
} from './fields.ts'

const types = readFileSync(new URL('../../../node_modules/@google/genai/dist/genai.d.ts', import.meta.url), 'utf8')

function fieldsOf(type: string): readonly string[] {
  const start = types.search(new RegExp(`^export declare (?:interface|class) ${type} \\{$`, 'm'))
  if (start < 0) throw new Error(`there is no type ${type}`)
  const body = types.slice(start, types.indexOf('\n}', start))
  return [...body.matchAll(/^ {4}(\w+)\??: /gm)].map(match => match[1]!)
}

/** Config fields that the client does not send. The field in `renamed` is sent under another name. */
const clientOnly = ['httpOptions', 'abortSignal', 'automaticFunctionCalling', 'automaticContinuation']
const renamed = ['generationOutputConfig']

const rows: readonly (readonly [type: string, ...tables: readonly FieldTable[]])[] = [
  ['GenerateContentConfig', requestFields, configFields],
  ['GenerationConfig', configFields],
  ['ThinkingConfig', thinkingFields],
  ['ToolConfig', toolConfigFields],
  ['FunctionCallingConfig', functionCallingFields],
  ['FunctionDeclaration', functionFields],
  ['GoogleSearch', searchFields],
  ['Part', partFields],
  ['FunctionCall', callFields],
  ['FunctionResponse', resultFields],
]

test.each(rows)('the field tables know every field of %s', (type, ...tables) => {
  const fields = fieldsOf(type).filter(field => !clientOnly.includes(field) && !renamed.includes(field))
  expect(fields.length).toBeGreaterThan(2)
  for (const field of fields) expect([field, tables.some(table => Object.hasOwn(table, field))]).toEqual([field, true])
})

test('each kind of content is a field of a part', () => {
  for (const kind in partKinds) expect(partFields[kind]).toBe('read')
})
