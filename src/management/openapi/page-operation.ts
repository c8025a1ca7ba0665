// Writes one operation of the page: who may use it, its parameters and body, an example with curl, and its answers.

import type { DocumentOperation, OpenApi } from './document.ts'
import type { JsonSchema, OpenApiResponse } from './operation.ts'
import type { SchemaResolver } from './page-fields.ts'
import { fieldRow, fieldsTable, typeText } from './page-fields.ts'
import { escapeHtml, markCode, pathText } from './page-text.ts'

export interface PageOperation {
  readonly method: string
  readonly path: string
  readonly operation: DocumentOperation
}

export function operationPart({ method, path, operation }: PageOperation, document: OpenApi): string {
  const { operationId, summary, description } = operation
  const resolve = resolverOf(document)
  const verb = method.toUpperCase()
  return `<details class="op" id="${operationId}">
<summary><span class="verb ${method}">${verb}</span><code>${pathText(path)}</code><em>${markCode(summary)}</em></summary>
<div class="details">
<p class="who">For ${escapeHtml(operation['x-weir-who'])}.${description === undefined ? '' : ` ${markCode(description)}`}</p>
${parametersPart(operation, resolve)}
${bodyPart(operation, resolve)}
<h4>Try it</h4>
<pre><code>${escapeHtml(curlLine({ method, path, operation }, document))}</code></pre>
${answersPart(operation, document)}
</div>
</details>`
}

function resolverOf({ components }: OpenApi): SchemaResolver {
  const schemas = components.schemas as Readonly<Record<string, JsonSchema>>
  return schema => {
    const { $ref } = schema
    return typeof $ref === 'string' ? (schemas[$ref.replace(/^.*\//, '')] ?? {}) : schema
  }
}

function parametersPart({ parameters }: DocumentOperation, resolve: SchemaResolver): string {
  const places = [
    ['path', 'Path parameters'],
    ['query', 'Query parameters'],
    ['header', 'Headers'],
  ] as const
  return places
    .map(([place, title]) => {
      const rows = parameters.filter(parameter => parameter.in === place)
      if (rows.length === 0) return ''
      const fields = rows.map(({ name, required = false, description = '', schema }) =>
        fieldRow({ name, type: typeText(schema, resolve), required, about: description }),
      )
      return `<h4>${title}</h4><dl class="fields">${fields.join('')}</dl>`
    })
    .join('\n')
}

function bodyPart({ requestBody }: DocumentOperation, resolve: SchemaResolver): string {
  if (requestBody === undefined) return ''
  return Object.entries(requestBody.content)
    .map(([type, { schema }]) => `<h4>Body <small>${escapeHtml(type)}</small></h4>${fieldsTable(schema, resolve)}`)
    .join('\n')
}

/** An example for a terminal; `$WEIR` is the address of the gateway. */
function curlLine({ method, path, operation }: PageOperation, document: OpenApi): string {
  const verb = method.toUpperCase()
  const [scheme] = operation.security
  const credential = scheme === undefined ? '' : ` -H "Authorization: Bearer ${'token' in scheme ? '$TOKEN' : '$KEY'}"`
  const examplePath = path.replace(/\{(\w+)\}/g, (_, name: string) => exampleIn(operation, name, document))
  const head = `curl "$WEIR${examplePath}"${verb === 'GET' || operation.requestBody ? '' : ` -X ${verb}`}${credential}`
  const json = operation.requestBody?.content['application/json']
  if (json === undefined) {
    const form = operation.requestBody?.content['multipart/form-data']
    return form === undefined ? head : `${head} \\\n  -F model=provider/model -F file=@file`
  }
  const [example] = Object.values(json.examples ?? {})
  const body = JSON.stringify(example?.value ?? {}, undefined, 2).replaceAll("'", "'\\''")
  const methodOption = verb === 'POST' ? '' : ` -X ${verb}`
  return `${head}${methodOption} \\\n  -H "Content-Type: application/json" -d '${body}'`
}

const pathExamples: Readonly<Record<string, string>> = { model: 'demo/echo', tier: 'pro' }

function exampleIn({ parameters }: DocumentOperation, name: string, document: OpenApi): string {
  const schema = resolverOf(document)(parameters.find(parameter => parameter.name === name)?.schema ?? {})
  const prefix = /^\^([a-z]+)_/.exec(String(schema.pattern ?? ''))?.[1]
  return pathExamples[name] ?? (prefix === undefined ? name : `${prefix}_00000000001`)
}

function answersPart({ responses }: DocumentOperation, document: OpenApi): string {
  const shared = document.components.responses as Readonly<Record<string, OpenApiResponse>>
  const resolve = resolverOf(document)
  const rows = Object.entries(responses).flatMap(([status, response]) => {
    if (status === 'default') return []
    const answer = '$ref' in response ? shared[response.$ref.replace(/^.*\//, '')]! : response
    const codes = answer['x-weir-codes']
    const about = codes === undefined ? markCode(answer.description) : codes.map(codeLink).join(' ')
    return [`<div class="s${status[0]}"><dt>${status}</dt><dd>${about}${answerFields(answer, resolve)}</dd></div>`]
  })
  return `<h4>Answers</h4><dl class="answers">${rows.join('')}</dl>`
}

const codeLink = (code: string): string => `<a href="#error-${code}"><code>${code}</code></a>`

function answerFields({ content = {}, ...answer }: OpenApiResponse, resolve: SchemaResolver): string {
  if (answer['x-weir-codes'] !== undefined) return ''
  return Object.entries(content)
    .map(([type, { schema }]) => {
      const fields = fieldsTable(schema, resolve, 'answer')
      const folded = fields === '' ? '' : `<details><summary>fields</summary>${fields}</details>`
      return `<small>${escapeHtml(type)}</small>${folded}`
    })
    .join('')
}
