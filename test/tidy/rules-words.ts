// Words that may not stand where they stand: escapes from the type checker, leftovers, provider ids, bare SQL, secrets.

import type { Finding, Rule, SourceFile, Tree } from './source.ts'
import { fileName, isIn, isTest, ourCode, shippedCode, srcCode, tokensOf } from './source.ts'
import type { Token, Tokens } from './tokens.ts'
import { isPunct, isWord, literalText, opensHole } from './tokens.ts'

type Hit = { readonly line: number; readonly message: string; readonly subject?: string }

/** Looks at each token of each file. */
function eachToken(
  files: readonly SourceFile[],
  look: (code: readonly Token[], at: number, tokens: Tokens) => Hit | undefined,
): readonly Finding[] {
  return files.flatMap(file => {
    const tokens = tokensOf(file)
    return tokens.code.flatMap((_, at) => {
      const hit = look(tokens.code, at, tokens)
      return hit ? [{ file: file.path, ...hit }] : []
    })
  })
}

function eachComment(files: readonly SourceFile[], pattern: RegExp, message: string): readonly Finding[] {
  return files.flatMap(file =>
    tokensOf(file)
      .comments.filter(comment => pattern.test(comment.text))
      .map(({ line }) => ({ file: file.path, line, message })),
  )
}

const MESSAGE_ANY = 'the type any turns the checker off; say what it is, or unknown and a check'

function noAny(tree: Tree): readonly Finding[] {
  return eachToken(ourCode(tree), (code, at) => {
    if (!isWord(code[at], 'any')) return undefined
    const [before, after] = [code[at - 1]?.text ?? '', code[at + 1]?.text ?? '']
    if (before === '.' || before === '?.' || after === '(') return undefined
    // A field or parameter that is called so.
    if (['{', ',', '(', ';'].includes(before) && [':', '?'].includes(after)) return undefined
    return { line: code[at]!.line, message: MESSAGE_ANY }
  })
}

function noSilencing(tree: Tree): readonly Finding[] {
  const files = ourCode(tree).filter(file => !isIn(file.path, 'test/types'))
  const message = 'do not silence the type checker; only test/types/ may expect its errors'
  return eachComment(files, /(^|\n)[\s/*]*@ts-(ignore|expect-error|nocheck)\b/, message)
}

function noLeftovers(tree: Tree): readonly Finding[] {
  const files = ourCode(tree)
  return eachComment(files, /\b(TODO|FIXME)\b/, 'finish it, or write down elsewhere what is left to do')
}

function noSkippedTests(tree: Tree): readonly Finding[] {
  const tests = ourCode(tree).filter(file => isTest(file.path) || isIn(file.path, 'test'))
  return eachToken(tests, (code, at) => {
    const word = code[at]!
    if (word.kind !== 'word' || !['skip', 'only', 'todo'].includes(word.text)) return undefined
    const called = isPunct(code[at + 1], '(') || (isPunct(code[at + 1], '.') && isWord(code[at + 2], 'each'))
    if (!isPunct(code[at - 1], '.') || !called) return undefined
    return { line: word.line, message: `.${word.text}() hides a test; make it run or delete it` }
  })
}

function noDefaultExports(tree: Tree): readonly Finding[] {
  return eachToken(ourCode(tree), (code, at) => {
    if (!isWord(code[at], 'default')) return undefined
    const renamed = isWord(code[at - 1], 'as') && isPunct(code[at + 1], '}')
    if (!isWord(code[at - 1], 'export') && !renamed) return undefined
    return { line: code[at]!.line, message: 'export it by its name, so that it is called the same everywhere' }
  })
}

function noConsole(tree: Tree): readonly Finding[] {
  const files = srcCode(tree).filter(file => !isIn(file.path, 'src/cli'))
  return eachToken(files, (code, at) => {
    const used = isWord(code[at], 'console') && isPunct(code[at + 1], '.') && !isPunct(code[at - 1], '.')
    return used ? { line: code[at]!.line, message: 'use the Log passed in; only cli/ talks to a person' } : undefined
  })
}

const RUNTIME_FILES = /^src\/(http|store|cli)\/|^src\/main\.ts$/

function runtimeApis(tree: Tree): readonly Finding[] {
  const files = shippedCode(tree).filter(file => !RUNTIME_FILES.test(file.path))
  const message = 'only http/, store/, cli/ and main.ts touch the runtime; have it passed in'
  return eachToken(files, (code, at) => {
    const token = code[at]!
    const isField = isPunct(code[at - 1], '.') && !isWord(code[at - 2], 'globalThis')
    const asGlobal = isWord(token, 'Bun') && !isField && !isPunct(code[at + 1], ':')
    const isModule = token.kind === 'string' && /^bun(:.*)?$/.test(literalText(token)!)
    const imported = isModule && (isWord(code[at - 1], 'from') || isWord(code[at - 1], 'import') || isDynamic(code, at))
    return asGlobal || imported ? { line: token.line, message } : undefined
  })
}

const isDynamic = (code: readonly Token[], at: number): boolean =>
  isPunct(code[at - 1], '(') && (isWord(code[at - 2], 'import') || isWord(code[at - 2], 'require'))

function providerId(file: SourceFile): string {
  try {
    const { id } = JSON.parse(file.text) as { id?: unknown }
    if (typeof id === 'string') return id
  } catch {
    // A broken file is the catalogue's to refuse; its name says enough here.
  }
  return fileName(file.path).replace(/\.json$/, '')
}

function noProviderIds(tree: Tree): readonly Finding[] {
  const dialects = new Set(tree.files.map(file => /^src\/protocols\/([^/]+)\//.exec(file.path)?.[1]))
  const ids = new Set(tree.files.filter(file => /^providers\/[^/]+\.json$/.test(file.path)).map(providerId))
  return eachToken(shippedCode(tree), (code, at) => {
    const text = literalText(code[at]!)
    if (text === undefined || !ids.has(text) || dialects.has(text)) return undefined
    const message = `'${text}' is a provider; ask what a provider can (a flag in providers/), never who it is`
    return { line: code[at]!.line, message, subject: text }
  })
}

const REVEALING_FILES: readonly { readonly files: RegExp; readonly reason: string }[] = [
  { files: /^src\/upstreams\/signing\.ts$/, reason: 'signs what goes to a provider' },
  { files: /^src\/upstreams\/channels\.ts$/, reason: 'names a credential by its fingerprint' },
  { files: /^src\/http\/proxy\.ts$/, reason: 'tells a proxy who we are' },
  { files: /^src\/base\/seal\.ts$/, reason: 'makes the key that closes envelopes' },
  { files: /^src\/identity\//, reason: 'checks keys, tokens and passwords' },
  { files: /^src\/cli\//, reason: 'shows a person the key just made' },
  { files: /^src\/main\.ts$/, reason: 'hands secrets of the configuration to the parts' },
  { files: /^src\/store\//, reason: 'opens connections with credentials' },
]

function secretsStay(tree: Tree): readonly Finding[] {
  const files = shippedCode(tree).filter(file => !REVEALING_FILES.some(row => row.files.test(file.path)))
  return eachToken(files, (code, at) => {
    const read = isWord(code[at], 'reveal') && (isPunct(code[at - 1], '.') || isPunct(code[at - 1], '?.'))
    return read ? { line: code[at]!.line, message: 'pass the Secret on; only the files named here read it' } : undefined
  })
}

const SQL_CALLS = new Set(['query', 'prepare', 'run', 'exec', 'unsafe'])

/** Whether the first argument of the call is text with values put in. Literals joined for length are no such text. */
function buildsText({ code, closeOf }: Tokens, open: number): boolean {
  const close = closeOf.get(open) ?? code.length
  let joined = false
  let operands = 0
  let literals = 0
  for (let at = open + 1; at < close && !isPunct(code[at], ','); at++) {
    const token = code[at]!
    if (opensHole(token)) return true
    if (isPunct(token, '+')) joined = true
    else if (token.kind !== 'punct') operands++
    if (literalText(token) !== undefined) literals++
    at = closeOf.get(at) ?? at
  }
  return joined && literals > 0 && literals < operands
}

function boundSql(tree: Tree): readonly Finding[] {
  const files = shippedCode(tree).filter(file => isIn(file.path, 'src/store'))
  return eachToken(files, (code, at, tokens) => {
    const called = SQL_CALLS.has(code[at]!.text) && isPunct(code[at - 1], '.') && isPunct(code[at + 1], '(')
    if (!called || !buildsText(tokens, at + 1)) return undefined
    return { line: code[at]!.line, message: 'SQL is one fixed text; bind the values as parameters' }
  })
}

const VAGUE = /^(utils?|helpers?|common|misc)$|-(utils?|helpers?)$/
const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/

function names(tree: Tree): readonly Finding[] {
  const others = ourCode(tree).filter(file => !isIn(file.path, 'src'))
  const files = [...tree.files.filter(file => isIn(file.path, 'src')), ...others]
  return files.flatMap(({ path }) =>
    path.split('/').flatMap(part => {
      const place = { file: path, line: 1 }
      if (VAGUE.test(part.split('.')[0]!)) return [{ ...place, message: `"${part}" says nothing; name its subject` }]
      return KEBAB.test(part) ? [] : [{ ...place, message: `"${part}" must be in kebab-case` }]
    }),
  )
}

export const wordRules = {
  'any': { says: 'nothing has the type any', check: noAny },
  'silenced-checker': { says: 'the type checker is not silenced', check: noSilencing },
  'leftovers': { says: 'no comment promises later work', check: noLeftovers },
  'skipped-tests': { says: 'every test runs', check: noSkippedTests },
  'default-exports': { says: 'nothing is exported as default', check: noDefaultExports },
  'console': { says: 'src writes to its log and not to the console', check: noConsole },
  'runtime-apis': { says: 'only http, store, cli and main touch the runtime', check: runtimeApis },
  'provider-ids': { says: 'src names no provider', check: noProviderIds },
  'revealed-secrets': { says: 'secrets are revealed only where they are used', check: secretsStay },
  'bound-sql': { says: 'SQL is not built from values', check: boundSql },
  'names': { says: 'files and folders have telling names in kebab-case', check: names },
} satisfies Record<string, Rule>
