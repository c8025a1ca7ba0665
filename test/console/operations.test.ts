// Every operation of the management API is used by the console, and every error of it has a Chinese text. Requests are named
// by the operation, so the sources tell.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { operationRoles } from '../../console/src/api/types.ts'
import type { ErrorCode } from '../../src/base/errors.ts'
import { buildErrorReply, Refusal } from '../../src/base/errors.ts'
import { writeError } from '../../src/protocols/openai-chat/errors.ts'

const folder = join(import.meta.dir, '..', '..', 'console', 'src')
const files = [...new Bun.Glob('**/*.{ts,tsx}').scanSync(folder)].filter(
  name => !/\.test\.ts$|^api\/types\.ts$/.test(name),
)
const sources = files.map(name => readFileSync(join(folder, name), 'utf8')).join('\n')

/** Operations that no page uses, and why. */
const unused: Readonly<Record<string, string>> = {
  'GET /api/public/settings': 'POST /api/auth/session tells the same with the first request',
  'GET /api/auth/setup': 'POST /api/auth/session tells the same with the first request',
  'POST /api/auth/refresh': 'POST /api/auth/session renews, and is no error when nobody is signed in',
  'GET /api/web/accounts/{account}/statement/export': 'POST /api/web/downloads gives a link to the same file',
  'GET /api/web/records/export': 'POST /api/web/downloads gives a link to the same file',
  'GET /api/auth/downloads/{ticket}': 'the browser follows the link that POST /api/web/downloads gives',
  'GET /api/web/records/deletions/{deletion}': 'the list shows all of a deletion',
}

/** Requests before signing in are sent by their path. */
const isUsed = (operation: string): boolean => {
  const isOpen = operation.startsWith('POST /api/auth/')
  return sources.includes(`'${operation}'`) || (isOpen && sources.includes(`'${operation.slice('POST '.length)}'`))
}

test('every operation is used by the console, or has a reason', () => {
  const operations = Object.keys(operationRoles)
  expect(operations.length).toBeGreaterThan(100)
  expect(operations.filter(operation => !isUsed(operation)).sort()).toEqual(Object.keys(unused).sort())
})

test('the console asks for nothing that the API does not have', () => {
  const asked = Array.from(sources.matchAll(/'((?:GET|POST|PUT|PATCH|DELETE) \/api\/[^']+)'/g), ([, name]) => name!)
  const unknown = [...new Set(asked)].filter(name => !(name in operationRoles))
  expect(unknown).toEqual([])
})

interface Answer {
  /** `#/components/responses/<name>` */
  readonly $ref?: string
  readonly 'x-weir-codes'?: readonly ErrorCode[]
}
interface Operation {
  readonly responses?: Readonly<Record<string, Answer>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly responses: Readonly<Record<string, Answer>> }
}

/** The code as an answer has it: some have another name in the dialect of OpenAI. */
function codeInAnswer(code: ErrorCode): string {
  const { body } = writeError(buildErrorReply(new Refusal(code, ''), 'req_1'))
  return (JSON.parse(body) as { error: { code: string } }).error.code
}

test('every error of the management API has a Chinese text', () => {
  const path = join(import.meta.dir, '..', '..', 'docs', 'reference', 'openapi.json')
  const { paths, components } = JSON.parse(readFileSync(path, 'utf8')) as Document
  const answers = Object.entries(paths)
    .filter(([name]) => /^\/api\/(web|auth)\//.test(name))
    .flatMap(([, operations]) => Object.values(operations).flatMap(({ responses = {} }) => Object.values(responses)))
    .map(answer => (answer.$ref === undefined ? answer : components.responses[answer.$ref.split('/').at(-1)!]!))
  const codes = new Set(answers.flatMap(answer => answer['x-weir-codes'] ?? []))
  expect(codes.size).toBeGreaterThan(30)
  const chinese = readFileSync(join(folder, 'words', 'zh', 'errors.ts'), 'utf8')
  expect([...codes].map(codeInAnswer).filter(code => !chinese.includes(`  ${code}: `))).toEqual([])
})
