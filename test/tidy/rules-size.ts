// A line fits on a screen, nothing stands twice, and a file says what it is for.

import type { Finding, Rule, SourceFile, Tree } from './source.ts'
import { isTest, ourCode, shippedCode, tokensOf } from './source.ts'

const COLUMNS_MAX = 120
const REPEATED_RUN_LINES_MIN = 8
const REPEATED_PERCENT_LIMIT = 4

const linesOf = (file: SourceFile): readonly string[] => file.text.replace(/\n$/, '').split('\n')

function lineColumns(tree: Tree): readonly Finding[] {
  return ourCode(tree).flatMap(file =>
    linesOf(file).flatMap((text, index) => {
      const columns = text.length > COLUMNS_MAX ? [...text].length : text.length
      const message = `${columns} columns; break the line, at most ${COLUMNS_MAX}`
      return columns > COLUMNS_MAX ? [{ file: file.path, line: index + 1, message }] : []
    }),
  )
}

interface CodeLine {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** The lines that say something: no comments, no imports, no lines of brackets alone; spaces folded. */
function tellingLines(file: SourceFile): readonly CodeLine[] {
  const { code } = tokensOf(file)
  const lines = new Map<number, string>()
  for (const { line, text } of code) lines.set(line, `${lines.get(line) ?? ''} ${text}`)
  const found: CodeLine[] = []
  let inImport = false
  for (const [line, folded] of lines) {
    const text = folded.replace(/\s+/g, ' ').trim()
    const opensImport = /^import (?!\()/.test(text) || /^export (type )?(\{|\* )/.test(text)
    if (opensImport || inImport) inImport = !/['"]$|^\}$/.test(text)
    else if (/[\p{L}\d]/u.test(text)) found.push({ file: file.path, line, text })
  }
  return found
}

/** The indexes of lines that belong to a run of lines which stands elsewhere too, each with where that is. */
function repeatedLines(lines: readonly CodeLine[]): ReadonlyMap<number, CodeLine> {
  const repeated = new Map<number, CodeLine>()
  const seen = new Map<string, number>()
  for (let start = 0; start + REPEATED_RUN_LINES_MIN <= lines.length; start++) {
    const run = lines.slice(start, start + REPEATED_RUN_LINES_MIN)
    if (run.at(-1)!.file !== run[0]!.file) continue
    const key = run.map(line => line.text).join('\n')
    const earlier = seen.get(key)
    if (earlier === undefined) {
      seen.set(key, start)
    } else if (start - earlier >= REPEATED_RUN_LINES_MIN) {
      // Both copies count: it is the share of code that a reader meets twice.
      run.forEach((_, offset) => {
        repeated.set(earlier + offset, lines[start + offset]!)
        repeated.set(start + offset, lines[earlier + offset]!)
      })
    }
  }
  return repeated
}

function repeatedRuns(tree: Tree): readonly Finding[] {
  const lines = shippedCode(tree).flatMap(tellingLines)
  const repeated = repeatedLines(lines)
  const percent = (100 * repeated.size) / Math.max(1, lines.length)
  if (percent < REPEATED_PERCENT_LIMIT) return []
  const starts = [...repeated.keys()].sort((a, b) => a - b).filter(index => !repeated.has(index - 1))
  const places = starts.map(index => {
    const [here, there] = [lines[index]!, repeated.get(index)!]
    return `${here.file}:${here.line} = ${there.file}:${there.line}`
  })
  const share = `${percent.toFixed(1)} % of the lines stand twice, the limit is ${REPEATED_PERCENT_LIMIT} %`
  const message = `${share}; give each run a name and one place:\n    ${places.join('\n    ')}`
  return [{ file: 'src', line: 1, message }]
}

/** A head comment is the first line; a shebang may stand before it. */
function headComments(tree: Tree): readonly Finding[] {
  return shippedCode(tree)
    .filter(file => !isTest(file.path) && !/(^|\/)index\.ts$|\.generated\.ts$/.test(file.path))
    .filter(file => !/^(#![^\n]*\n)?\/\/[^\n]*[^\n\s/]/.test(file.text))
    .map(file => ({ file: file.path, line: 1, message: 'begin with a // comment that says what the file is for' }))
}

export const sizeRules = {
  'line-columns': { says: `a line has at most ${COLUMNS_MAX} columns`, check: lineColumns },
  'repeated-runs': { says: `less than ${REPEATED_PERCENT_LIMIT} % of src stands twice`, check: repeatedRuns },
  'head-comment': { says: 'a file of src begins with what it is for', check: headComments },
} satisfies Record<string, Rule>
