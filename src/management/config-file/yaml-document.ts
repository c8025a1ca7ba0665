// Parses a configuration file, which is YAML or JSON, and knows the line of every field, so that an error can name it.

import type { Document, Node, Pair } from 'yaml'
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { bounds } from '../../base/bounds.ts'
import { ConfigFileError } from './config-file-error.ts'

export interface YamlDocument {
  readonly file: string
  readonly value: unknown
  /** The line of a field, counted from 1. For a field that is missing, the line of what should contain it. */
  lineOf(path: readonly PropertyKey[]): number
}

export function parseYaml(text: string, file: string): YamlDocument {
  if (Buffer.byteLength(text) > bounds.configFileBytesMax) {
    const limit = bounds.configFileBytesMax / 1024 / 1024
    throw new ConfigFileError([`${file}: the file is too large. It may have at most ${limit} MiB.`])
  }
  const lines = new LineCounter()
  const document = orTooDeep(file, () => parseDocument(text, { lineCounter: lines, prettyErrors: false }))
  // A warning is about a tag that has no meaning here, so the value may not be what the author meant.
  const problems = [...document.errors, ...document.warnings]
  if (problems.some(({ message }) => message.startsWith('Maximum call stack'))) throw tooDeep(file)
  if (problems.length > 0) {
    throw new ConfigFileError(
      problems.map(({ pos, code, message }) => `${file}:${lines.linePos(pos[0]).line}: ${syntaxText(code, message)}`),
    )
  }
  // More aliases than this are no configuration but an attempt to fill the memory.
  const value = orTooDeep(file, () => document.toJS({ maxAliasCount: 100 }) as unknown)
  if (orTooDeep(file, () => containsItself(value, []))) {
    throw new ConfigFileError([`${file}: an alias (*name) is inside of its own anchor (&name).`])
  }
  return {
    file,
    value,
    lineOf: path => lines.linePos(offsetOf(document, path)).line || 1,
  }
}

function syntaxText(code: string, message: string): string {
  if (code === 'DUPLICATE_KEY') return 'the same field is written twice. Write it once.'
  if (code === 'MULTIPLE_DOCS') return 'there are several documents in the file ("---"). Only one is allowed.'
  return `this is not valid YAML: ${message.charAt(0).toLowerCase()}${message.slice(1)}.`
}

const tooDeep = (file: string): ConfigFileError => new ConfigFileError([`${file}: the file is nested too deeply.`])

function containsItself(value: unknown, above: readonly unknown[]): boolean {
  if (typeof value !== 'object' || value === null) return false
  return above.includes(value) || Object.values(value).some(below => containsItself(below, [...above, value]))
}

/** The parser recurses, so brackets without end exhaust its stack. */
function orTooDeep<T>(file: string, parse: () => T): T {
  try {
    return parse()
  } catch (fault) {
    if (fault instanceof RangeError) throw tooDeep(file)
    if (fault instanceof ReferenceError) {
      const isTooMany = fault.message.startsWith('Excessive')
      const problem = isTooMany ? 'there are too many aliases (*name)' : 'an alias (*name) has no anchor (&name)'
      throw new ConfigFileError([`${file}: ${problem}.`])
    }
    throw fault
  }
}

const keyOf = ({ key }: Pair): string => String(isScalar(key) ? key.value : key)

/** The position of the last part of the path that is in the document. */
function offsetOf(document: Document.Parsed, path: readonly PropertyKey[]): number {
  let node: unknown = document.contents
  let offset = document.contents?.range?.[0] ?? 0
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document)
    let next: unknown
    if (isMap(node)) {
      const pair = node.items.find(item => keyOf(item) === String(part))
      if (pair === undefined) return offset
      offset = (pair.key as Node).range?.[0] ?? offset
      next = pair.value
    } else if (isSeq(node)) {
      next = node.items[Number(part)]
      if (next === undefined) return offset
      offset = (next as Node).range?.[0] ?? offset
    } else return offset
    node = next
  }
  return offset
}
