// Finds functions in tokens: where they begin and end, and how many positional parameters they take.
//
// Signatures and function types are found too, because a seam with six arguments is no better than a function with
// six; they have the length of what is written.

import type { Token, Tokens } from './tokens.ts'
import { isPunct, isWord, opensHole } from './tokens.ts'

export interface FunctionSpan {
  readonly name: string
  readonly line: number
  readonly lines: number
  readonly params: number
}

const STATEMENTS = ['if', 'for', 'while', 'switch', 'catch', 'with']
/** Before brackets these words call nothing. */
const NOT_CALLED = new Set([
  ...STATEMENTS,
  ...['return', 'await', 'typeof', 'void', 'delete', 'throw', 'new', 'in', 'of', 'instanceof', 'yield', 'import'],
  ...['case', 'do', 'else', 'extends', 'as', 'async', 'default', 'keyof', 'is', 'satisfies', 'abstract', 'asserts'],
])
const MODIFIERS = new Set([
  ...['async', 'static', 'get', 'set', 'public', 'private', 'protected', 'override', 'readonly', 'abstract', '*'],
])
const TYPE_PREFIXES = new Set([
  ...['keyof', 'typeof', 'readonly', 'unique', 'infer', 'asserts', 'new', 'abstract', '|', '&'],
])
const TYPE_PUNCT = new Set(['.', ',', '|', '&', '?', ':', '=>', '=', '...', '-'])
const GOES_ON = new Set(['in', 'instanceof', 'as', 'satisfies'])

/** The index of the `>` that closes a list of types, or undefined when `<` only compares. */
function angleEnd({ code, closeOf }: Tokens, open: number): number | undefined {
  for (let at = open, depth = 0; at < code.length; at++) {
    const token = code[at]!
    const close = closeOf.get(at)
    if (close !== undefined) at = close - (opensHole(code[close]!) ? 1 : 0)
    else if (isPunct(token, '<')) depth++
    else if (isPunct(token, '>')) {
      if (--depth === 0) return at
    } else if (token.kind === 'punct' && !TYPE_PUNCT.has(token.text)) return undefined
  }
  return undefined
}

function angleStart({ code, openOf }: Tokens, close: number): number | undefined {
  for (let at = close, depth = 0; at >= 0; at--) {
    const token = code[at]!
    const open = openOf.get(at)
    if (open !== undefined) at = open
    else if (isPunct(token, '>')) depth++
    else if (isPunct(token, '<')) {
      if (--depth === 0) return at
    } else if (token.kind === 'punct' && !TYPE_PUNCT.has(token.text)) return undefined
  }
  return undefined
}

/** Whether brackets in a type hold parameters, as in `(a: A) => B`, and not a type, as in `(A | B)[]`. */
function holdsParameters({ code }: Tokens, open: number): boolean {
  const [first, second] = [code[open + 1], code[open + 2]]
  if (isPunct(first, ')') || isPunct(first, '...')) return true
  return first?.kind === 'word' && (isPunct(second, ':') || isPunct(second, '?') || isPunct(second, ','))
}

/** One step over a type where an operand must come; undefined where none does. */
function operandEnd(tokens: Tokens, at: number): { at: number; wanted: boolean } | undefined {
  const { code, closeOf } = tokens
  const token = code[at]!
  if (TYPE_PREFIXES.has(token.text)) return { at: at + 1, wanted: true }
  if (isPunct(token, '<')) {
    const end = angleEnd(tokens, at)
    return end === undefined ? undefined : { at: end + 1, wanted: true }
  }
  const close = closeOf.get(at)
  if (close === undefined) return token.kind === 'punct' ? undefined : { at: at + 1, wanted: false }
  if (token.kind === 'template') return { at: opensHole(code[close]!) ? close : close + 1, wanted: false }
  const arrow = isPunct(token, '(') && isPunct(code[close + 1], '=>') && holdsParameters(tokens, at)
  return { at: close + (arrow ? 2 : 1), wanted: arrow }
}

/** The index of the first token after the type that begins at `start`. */
function typeEnd(tokens: Tokens, start: number): number {
  const { code, closeOf } = tokens
  let wanted = true
  let conditions = 0
  for (let at = start; ; ) {
    const token = code[at]
    if (token === undefined) return at
    if (wanted || opensHole(token)) {
      const step = operandEnd(tokens, at)
      if (step === undefined) return at
      at = step.at
      wanted = step.wanted
    } else if ((isPunct(token, '[') && !token.first) || (isPunct(token, '(') && isWord(code[at - 1], 'import'))) {
      at = (closeOf.get(at) ?? at) + 1
    } else if (isPunct(token, '<')) {
      at = (angleEnd(tokens, at) ?? at) + 1
    } else if (['|', '&', '.', 'is', 'extends'].includes(token.text) || (token.text === ':' && conditions-- > 0)) {
      wanted = true
      at++
    } else if (isPunct(token, '?')) {
      conditions++
      wanted = true
      at++
    } else return at
  }
}

/** The last token of an expression, as far as line ends and brackets tell. */
function expressionEnd({ code, closeOf, openOf }: Tokens, start: number): number {
  for (let at = start; at < code.length; at++) {
    const token = code[at]!
    const previous = code[at - 1]
    if (openOf.has(at) || isPunct(token, ',') || isPunct(token, ';')) return at - 1
    const ended = previous?.kind !== 'punct' || [')', ']', '}', '!'].includes(previous.text)
    const opensStatement = token.kind !== 'punct' && !GOES_ON.has(token.text)
    if (at > start && token.first && ended && opensStatement) return at - 1
    for (let close = closeOf.get(at); close !== undefined; close = closeOf.get(at)) at = close
  }
  return code.length - 1
}

function countParams(tokens: Tokens, open: number): number {
  const { code, closeOf } = tokens
  const close = closeOf.get(open)!
  if (close === open + 1) return 0
  let commas = isPunct(code[close - 1], ',') ? -1 : 0
  for (let at = open + 1; at < close; at++) {
    if (isPunct(code[at], ',')) commas++
    else if (isPunct(code[at], '<')) at = angleEnd(tokens, at) ?? at
    else for (let inner = closeOf.get(at); inner !== undefined; inner = closeOf.get(at)) at = inner
  }
  return commas + (isWord(code[open + 1], 'this') ? 0 : 1)
}

/** Where the member whose name ends at `nameEnd` begins, or undefined when it is a call and no method. */
function memberStart({ code, openOf }: Tokens, nameEnd: number): number | undefined {
  const name = code[nameEnd]
  const nameStart = isPunct(name, ']') ? openOf.get(nameEnd) : nameEnd
  if (name === undefined || nameStart === undefined) return undefined
  if (nameStart === nameEnd && (name.kind === 'punct' || name.kind === 'template')) return undefined
  let start = nameStart
  while (!code[start]!.first && MODIFIERS.has(code[start - 1]?.text ?? '')) start--
  const opens = code[start]!.first || start < nameStart || ['{', '}', ',', ';'].includes(code[start - 1]?.text ?? '{')
  return opens ? start : undefined
}

interface Head {
  readonly start: number
  readonly name: string
  /** The index after the parameters and the type of the result. */
  readonly after: number
}

/** What the brackets at `open` are the parameters of. */
function headOf(tokens: Tokens, open: number): Head | undefined {
  const { code, closeOf } = tokens
  const close = closeOf.get(open)
  if (close === undefined) return undefined
  let before = open - 1
  if (isPunct(code[before], '>')) before = (angleStart(tokens, before) ?? before + 1) - 1
  const typed = isPunct(code[close + 1], ':')
  const after = typed ? typeEnd(tokens, close + 2) : close + 1

  const named = code[before]?.kind === 'word' && !isWord(code[before], 'function')
  let keyword = named ? before - 1 : before
  if (isPunct(code[keyword], '*')) keyword--
  if (isWord(code[keyword], 'function')) return { start: keyword, name: named ? code[before]!.text : '', after }

  const called = code[before]?.kind === 'word' && !NOT_CALLED.has(code[before]!.text)
  const isArrow = !called && !isPunct(code[before], ')') && !isPunct(code[before], ']')
  if (isArrow && isPunct(code[after], '=>')) return { start: open, name: arrowName(code, before + 1), after }

  const nameEnd = isPunct(code[before], '?') ? before - 1 : before
  const start = memberStart(tokens, nameEnd)
  const body = isPunct(code[after], '{') && code[after]!.line === code[after - 1]!.endLine
  if (start === undefined || !(typed || body)) return undefined
  // `delete(key): void {` is a method and `if (x) {` is none; only `case (x): {` could be taken for a typed one.
  const name = code[nameEnd]!.text
  return (typed ? name === 'case' : STATEMENTS.includes(name)) ? undefined : { start, name, after }
}

/** The name an arrow is given, as in `const name = (…) =>` or `name: (…) =>`. */
function arrowName(code: readonly Token[], start: number): string {
  let at = isWord(code[start - 1], 'async') ? start - 2 : start - 1
  if (!isPunct(code[at], '=') && !isPunct(code[at], ':')) return ''
  at--
  return code[at]?.kind === 'word' || code[at]?.kind === 'string' ? code[at]!.text : ''
}

function bodyEnd(tokens: Tokens, after: number): number {
  const { code, closeOf } = tokens
  const at = isPunct(code[after], '=>') ? after + 1 : after
  if (isPunct(code[at], '{')) return closeOf.get(at) ?? at
  return at > after ? expressionEnd(tokens, at) : after - 1
}

export function findFunctions(tokens: Tokens): readonly FunctionSpan[] {
  const { code, closeOf } = tokens
  const found: FunctionSpan[] = []
  /** From the closing bracket of parameters to the end of the result's type. */
  const results = new Map<number, number>()
  let typeEnds = -1
  const add = (head: Head, params: number): void => {
    const line = code[head.start]!.line
    const end = code[bodyEnd(tokens, head.after)]?.endLine ?? line
    found.push({ name: head.name, line, lines: end - line + 1, params })
  }
  code.forEach((token, at) => {
    // The type of a result, `): (x: X) => Y {`, is no function, and what follows its arrow is not its body.
    if (at <= typeEnds) return
    if (isPunct(token, '(')) {
      const head = headOf(tokens, at)
      if (!head) return
      add(head, countParams(tokens, at))
      results.set(closeOf.get(at)!, head.after)
    } else if (results.has(at)) {
      typeEnds = results.get(at)!
    } else if (isPunct(token, '=>') && code[at - 1]?.kind === 'word') {
      add({ start: at - 1, name: arrowName(code, at - 1), after: at }, 1)
    }
  })
  return found
}
