// Splits TypeScript into tokens, so that a rule never fires on a word inside a string, a comment or a regex.
//
// TypeScript 7 ships no stable JavaScript API, and the rules need no syntax tree: tokens, which brackets belong
// together and which token opens a line are enough.

export type TokenKind = 'word' | 'number' | 'string' | 'template' | 'regex' | 'punct'

export interface Token {
  readonly kind: TokenKind
  /** As written. A template comes in pieces: from the backtick or `}` to the next `${` or backtick, both included. */
  readonly text: string
  readonly line: number
  readonly endLine: number
  /** No other code stands before it on its line. */
  readonly first: boolean
}

export interface Comment {
  readonly text: string
  readonly line: number
}

export interface Tokens {
  readonly code: readonly Token[]
  readonly comments: readonly Comment[]
  /** From the index of an opening bracket (or of a template piece ending in `${`) to that of its closing one. */
  readonly closeOf: ReadonlyMap<number, number>
  readonly openOf: ReadonlyMap<number, number>
}

const SPACE = /\s+/y
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y
const WORD = /#?[\p{ID_Start}$_][\p{ID_Continue}$]*/uy
const NUMBER = /0[xXbBoO][\da-fA-F_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?n?/y
const STRING = /'(?:[^'\\\n]|\\[\s\S])*'?|"(?:[^"\\\n]|\\[\s\S])*"?/y
const TEMPLATE_PIECE = /[`}](?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{|$)/y
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y
// `>` always stands alone, because `Map<string, Set<number>>` closes two lists.
const PUNCT = /=>|[!=]==?|\.\.\.|\?\.(?!\d)|\?\?=?|&&=?|\|\|=?|\+\+|--|\*\*=?|<=|[-+*/%&|^]=|[\s\S]/uy

/** After these words a slash opens a regex. */
const BEFORE_OPERAND = new Set([
  ...['return', 'typeof', 'case', 'in', 'of', 'do', 'else', 'void', 'delete', 'throw', 'new'],
  ...['instanceof', 'await', 'yield', 'as', 'satisfies'],
])
const CONDITION_WORDS = new Set(['if', 'while', 'for', 'with'])

interface Scan {
  readonly text: string
  at: number
  line: number
  readonly code: Token[]
  readonly comments: Comment[]
  readonly open: number[]
  readonly closeOf: Map<number, number>
  readonly openOf: Map<number, number>
}

function take(scan: Scan, pattern: RegExp): string {
  pattern.lastIndex = scan.at
  const found = pattern.exec(scan.text)?.[0] ?? ''
  scan.at += found.length
  return found
}

const linesIn = (text: string): number => text.split('\n').length - 1

function add(scan: Scan, kind: TokenKind, text: string): void {
  const previous = scan.code.at(-1)
  const endLine = scan.line + linesIn(text)
  const first = previous === undefined || previous.endLine < scan.line
  scan.code.push({ kind, text, line: scan.line, endLine, first })
  scan.line = endLine
}

function pairUp(scan: Scan, token: Token): void {
  const index = scan.code.length - 1
  const template = token.kind === 'template'
  if (template ? token.text.startsWith('}') : /^[)\]}]$/.test(token.text)) {
    const open = scan.open.pop()
    if (open !== undefined) {
      scan.closeOf.set(open, index)
      scan.openOf.set(index, open)
    }
  }
  if (template ? opensHole(token) : /^[([{]$/.test(token.text)) scan.open.push(index)
}

/** Whether a template piece is followed by an expression. */
export function opensHole(token: Token): boolean {
  return token.kind === 'template' && token.text.endsWith('${')
}

/** Whether a slash here begins a regex, and is not a division. */
function regexMayStart(scan: Scan): boolean {
  const previous = scan.code.at(-1)
  if (previous === undefined) return true
  if (previous.kind === 'word') return BEFORE_OPERAND.has(previous.text)
  if (previous.kind === 'template') return opensHole(previous)
  if (previous.kind !== 'punct') return false
  if (previous.text === ')') {
    const open = scan.openOf.get(scan.code.length - 1)
    return open !== undefined && CONDITION_WORDS.has(scan.code[open - 1]?.text ?? '')
  }
  if (previous.text === '}') return previous.endLine < scan.line
  if (previous.text === '!') {
    // `a! / b` divides; in `!/x/.test(a)` nothing that could be asserted stands before the `!`.
    const asserted = scan.code.at(-2)
    const plain = asserted?.kind === 'word' && !BEFORE_OPERAND.has(asserted.text)
    return !(plain || asserted?.text === ')' || asserted?.text === ']')
  }
  return ![']', '++', '--'].includes(previous.text)
}

function scanToken(scan: Scan): void {
  const char = scan.text[scan.at]!
  const inHole = scan.open.length > 0 && scan.code[scan.open.at(-1)!]!.kind === 'template'
  if (char === '`' || (char === '}' && inHole)) {
    add(scan, 'template', take(scan, TEMPLATE_PIECE))
  } else if (char === "'" || char === '"') {
    add(scan, 'string', take(scan, STRING))
  } else if (/\d/.test(char) || (char === '.' && /\d/.test(scan.text[scan.at + 1] ?? ''))) {
    add(scan, 'number', take(scan, NUMBER))
  } else {
    const word = take(scan, WORD)
    const regex = word === '' && char === '/' && regexMayStart(scan) ? take(scan, REGEX) : ''
    if (word !== '') add(scan, 'word', word)
    else if (regex !== '') add(scan, 'regex', regex)
    else add(scan, 'punct', take(scan, PUNCT))
  }
  const token = scan.code.at(-1)!
  if (token.kind === 'punct' || token.kind === 'template') pairUp(scan, token)
}

export function tokenize(text: string): Tokens {
  const scan: Scan = {
    ...{ text, at: 0, line: 1 },
    ...{ code: [], comments: [], open: [], closeOf: new Map(), openOf: new Map() },
  }
  if (text.startsWith('#!')) scan.at = text.includes('\n') ? text.indexOf('\n') : text.length
  while (scan.at < text.length) {
    const space = take(scan, SPACE)
    scan.line += linesIn(space)
    const comment = take(scan, COMMENT)
    if (comment !== '') {
      scan.comments.push({ text: comment, line: scan.line })
      scan.line += linesIn(comment)
    } else if (space === '') {
      scanToken(scan)
    }
  }
  return scan
}

/** The words of a string or of a template without holes; undefined for anything else. */
export function literalText(token: Token): string | undefined {
  if (token.kind === 'string') return token.text.slice(1, -1)
  const whole = token.kind === 'template' && token.text.startsWith('`') && !opensHole(token)
  return whole ? token.text.slice(1, -1) : undefined
}

export const isPunct = (token: Token | undefined, text: string): boolean =>
  token?.kind === 'punct' && token.text === text

export const isWord = (token: Token | undefined, text: string): boolean => token?.kind === 'word' && token.text === text
