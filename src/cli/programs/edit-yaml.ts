// Sets fields in the text of a YAML file. The parser says where a value is in the text, and only this part is replaced:
// printing the document anew would round long numbers and change indentation and comments.

import type { Node, Pair, YAMLMap, YAMLSeq } from 'yaml'
import { isCollection, isMap, isNode, isScalar, isSeq, parseDocument, stringify } from 'yaml'
import type { FieldPath } from './edit-json.ts'
import { nestedValue } from './edit-json.ts'
import type { TextEdit } from './text-edit.ts'
import { insertAt, insertLines, nextLine } from './text-edit.ts'

/** Throws if the text is written in a way that cannot be edited by ranges, such as an alias on the path. */
export function setInYaml(text: string, path: FieldPath, value: unknown): readonly TextEdit[] {
  const document = parseDocument(text)
  if (document.errors.length > 0) throw document.errors[0]!
  let node: Node | null = document.contents
  if (node === null) return [insertLines(text, text.length, linesOf(nestedValue(path, value)))]
  for (const [depth, step] of path.entries()) {
    const inner = entryOf(node, step)
    if (inner === undefined) return [insert(text, node, path.slice(depth), value)]
    node = inner
  }
  return [replace(text, node, value)]
}

/** Undefined: there is no such entry. */
function entryOf(node: Node, step: string | number): Node | undefined {
  if (!isCollection(node)) throw new Error('the text has no fields here')
  const inner: unknown = node.get(step, true)
  if (inner === undefined) return undefined
  if (!isNode(inner)) throw new Error('the entry has no place in the text')
  return inner as Node
}

function replace(text: string, node: Node, value: unknown): TextEdit {
  if (!isScalar(node) || node.type?.startsWith('BLOCK') === true) throw new Error('not a value in one line')
  const [start, end] = rangeOf(node)
  // A field without a value has an empty range right behind its colon.
  const gap = start === end && text[start - 1] === ':' ? ' ' : ''
  return { start, end, text: gap + stringify(value, { lineWidth: 0 }).trimEnd() }
}

/** Adds an entry at the end of a map or a list. */
function insert(text: string, holder: Node, [name, ...inner]: FieldPath, value: unknown): TextEdit {
  if (!isMap(holder) && !isSeq(holder)) throw new Error('the text has no fields here')
  const nested = inner.length === 0 ? value : nestedValue(inner, value)
  const last = lastOf(holder)
  if (holder.flow === true) {
    const entry = `${isMap(holder) ? `${JSON.stringify(name)}: ` : ''}${JSON.stringify(nested)}`
    return insertAt(
      last === undefined ? rangeOf(holder)[0] + 1 : endOf(last),
      `${last === undefined ? '' : ', '}${entry}`,
    )
  }
  const [start] = rangeOf(holder)
  const margin = text.slice(text.lastIndexOf('\n', start - 1) + 1, start).replaceAll(/[^ ]/g, ' ')
  const lines = linesOf(isSeq(holder) ? [nested] : { [name!]: nested }).map(line => margin + line)
  const end = endOf(last!)
  // A text of several lines ends behind its line break, other values before theirs.
  return insertLines(text, text[end - 1] === '\n' ? end : nextLine(text, end), lines)
}

const linesOf = (value: unknown): readonly string[] => stringify(value, { lineWidth: 0 }).trimEnd().split('\n')

const rangeOf = (node: Node): readonly [number, number] => {
  if (!node.range) throw new Error('the node has no place in the text')
  return [node.range[0], node.range[1]]
}

function lastOf(holder: YAMLMap | YAMLSeq): Node | undefined {
  const last: unknown = holder.items.at(-1)
  if (last === undefined) return undefined
  if (isNode(last)) return last as Node
  const { key, value } = last as Pair
  return (value ?? key) as Node
}

/** The end of the last value inside a node: blocks have no end of their own. */
function endOf(node: Node): number {
  const last = (isMap(node) || isSeq(node)) && node.flow !== true ? lastOf(node) : undefined
  return last === undefined ? rangeOf(node)[1] : endOf(last)
}
