// Reads the tools of a request and how the model may use them.

import type { FunctionTool, Tool, ToolChoice } from '../neutral/conversation.ts'
import { dropRepeatedTools } from '../neutral/repeated-tools.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { toCamelCaseFields } from './field-names.ts'
import { functionCallingFields, functionFields, searchFields, toolConfigFields } from './fields.ts'
import { asList } from './input.ts'
import { fromOpenApiSchema } from './schema.ts'

const SEARCH_TOOLS = new Set(['googleSearch', 'googleSearchRetrieval'])

export function readTools(tools: unknown, unread: Set<string>): readonly Tool[] {
  const read = asList(tools).flatMap((toolJson, index) => {
    if (!isObject(toolJson)) throw invalid(`tools[${index}]`, 'must be an object')
    const tool = toCamelCaseFields(toolJson, `tools[${index}]`)
    return Object.keys(tool).flatMap(name => readTool(name, tool[name], unread))
  })
  return dropRepeatedTools(read, unread)
}

function readTool(name: string, value: unknown, unread: Set<string>): readonly Tool[] {
  if (value === undefined || value === null) return []
  if (name === 'functionDeclarations') return asList(value).map(declaration => readFunction(declaration, unread))
  if (!SEARCH_TOOLS.has(name)) return [{ kind: 'native', dialect: 'gemini', what: name, value: { [name]: value } }]
  const options = isObject(value) ? toCamelCaseFields(value, `tools.${name}`) : {}
  for (const field of findLostFields(options, searchFields, `tools.${name}`)) unread.add(field)
  return [{ kind: 'search' }]
}

function readFunction(declaration: unknown, unread: Set<string>): FunctionTool {
  const path = 'tools.functionDeclarations'
  if (!isObject(declaration)) throw invalid(path, 'must be a list of objects')
  const json = toCamelCaseFields(declaration, path)
  for (const field of findLostFields(json, functionFields, path)) unread.add(field)
  if (typeof json.name !== 'string' || json.name === '') throw invalid(`${path}.name`, 'must be a name')
  const description = readOptional(json, 'description', 'text')
  const [own, subset] = [
    readOptional(json, 'parametersJsonSchema', 'object'),
    readOptional(json, 'parameters', 'object'),
  ]
  const schema = own ?? (subset === undefined ? undefined : fromOpenApiSchema(subset))
  return {
    kind: 'function',
    name: json.name,
    ...(description !== undefined && { description }),
    ...(schema !== undefined && { schema }),
  }
}

export function readToolChoice(toolConfig: unknown, unread: Set<string>): ToolChoice | undefined {
  if (toolConfig === undefined || toolConfig === null) return undefined
  if (!isObject(toolConfig)) throw invalid('toolConfig', 'must be an object')
  const config = toCamelCaseFields(toolConfig, 'toolConfig')
  for (const field of findLostFields(config, toolConfigFields, 'toolConfig')) unread.add(field)
  const path = 'toolConfig.functionCallingConfig'
  const calling = toCamelCaseFields(readOptional(config, 'functionCallingConfig', 'object') ?? {}, path)
  for (const field of findLostFields(calling, functionCallingFields, path)) unread.add(field)
  return readMode(calling, path, unread)
}

function readMode(calling: Json, path: string, unread: Set<string>): ToolChoice | undefined {
  const mode = readOptional(calling, 'mode', 'word')?.toUpperCase()
  const names = readOptional(calling, 'allowedFunctionNames', 'list') ?? []
  if (names.some(name => typeof name !== 'string'))
    throw invalid(`${path}.allowedFunctionNames`, 'must be a list of function names')
  const only = names.length === 0 ? {} : { names: names as readonly string[] }
  switch (mode) {
    case undefined:
    case 'MODE_UNSPECIFIED':
      return names.length === 0 ? undefined : { mode: 'auto', ...only }
    case 'AUTO':
      return { mode: 'auto', ...only }
    case 'VALIDATED':
      unread.add(`${path}.validated`)
      return { mode: 'auto', ...only }
    case 'ANY':
      return { mode: 'required', ...only }
    case 'NONE':
      return { mode: 'none' }
    default:
      throw invalid(`${path}.mode`, 'must be AUTO, ANY, NONE or VALIDATED')
  }
}
