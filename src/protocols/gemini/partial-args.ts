// Collects the arguments of a function call that arrives in pieces. Each piece names its position by a JSONPath, and a
// string may arrive in several pieces.

import { bounds } from '../../base/bounds.ts'
import { findLongInteger } from '../../base/text/long-integers.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** A long integer is an object that only JSON.stringify reads. */
type Leaf = string | number | boolean | null | object
type Node = Leaf | Map<string, Node> | Node[]

/** Limits on depth and list length, beyond any real arguments. */
const STEPS_MAX = 64
const INDEX_MAX = 10_000

export class PartialArgs {
  readonly #root = new Map<string, Node>()
  /** The paths of strings whose last piece has not arrived. */
  readonly #continuing = new Set<string>()
  #chars = 0

  /** False for a piece that is invalid or does not fit the pieces before it. */
  addPiece(piece: unknown): boolean {
    if (!isObject(piece) || typeof piece.jsonPath !== 'string') return false
    const { jsonPath: path } = piece
    const steps = parsePath(path)
    const value = readValue(piece)
    if (steps === undefined || value === undefined) return false
    this.#chars += path.length + (typeof value === 'string' ? value.length : 8)
    if (this.#chars > bounds.frameBytesMax) return false
    const continues = this.#continuing.has(path)
    if (piece.willContinue === true) this.#continuing.add(path)
    else this.#continuing.delete(path)
    const nextValue = (old: Node | undefined): Leaf =>
      continues && typeof old === 'string' && typeof value === 'string' ? old + value : value
    return setAt(this.#root, steps, nextValue)
  }

  /** Adds fields that arrived whole. */
  addFields(args: Json): void {
    for (const name of Object.keys(args)) this.#root.set(name, toNode(args, name))
  }

  /** The arguments as JSON text. */
  get text(): string {
    return write(this.#root)
  }
}

const STEP = /\.([^.[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y

/** Splits a path into names and indexes, for example `$.cities[0].name` or `$['a name']`. */
function parsePath(path: string): readonly (string | number)[] | undefined {
  if (!path.startsWith('$')) return undefined
  const steps: (string | number)[] = []
  for (let at = 1; at < path.length; ) {
    STEP.lastIndex = at
    const [step, name, index, single, double] = STEP.exec(path) ?? []
    if (step === undefined || steps.length >= STEPS_MAX) return undefined
    at += step.length
    const quoted = single ?? double
    steps.push(name ?? (index === undefined ? quoted!.replace(/\\(.)/g, '$1') : Number(index)))
  }
  const hasValidIndexes = steps.every(step => typeof step === 'string' || step <= INDEX_MAX)
  return typeof steps[0] === 'string' && hasValidIndexes ? steps : undefined
}

function readValue(piece: Json): Leaf | undefined {
  const { stringValue, numberValue, boolValue, nullValue } = piece
  if (typeof stringValue === 'string') return stringValue
  if (typeof numberValue === 'number') return findLongInteger(piece, 'numberValue', numberValue) ?? numberValue
  if (typeof boolValue === 'boolean') return boolValue
  return nullValue === undefined ? undefined : null
}

/** Sets the value at a path, and creates the containers on the way. False where the path meets a value of another type. */
function setAt(root: Node, steps: readonly (string | number)[], change: (old: Node | undefined) => Leaf): boolean {
  let container: Node = root
  for (let at = 0; at < steps.length; at++) {
    const [step, next] = [steps[at]!, steps[at + 1]]
    const old = childOf(container, step)
    const createContainer = (): Node => (typeof next === 'number' ? [] : new Map<string, Node>())
    const child: Node = next === undefined ? change(old) : isContainer(old) ? old : createContainer()
    if (!setChild(container, step, child)) return false
    container = child
  }
  return true
}

const isContainer = (node: Node | undefined): node is Map<string, Node> | Node[] =>
  node instanceof Map || Array.isArray(node)

function childOf(container: Node, step: string | number): Node | undefined {
  if (container instanceof Map) return container.get(String(step))
  return Array.isArray(container) && typeof step === 'number' ? container[step] : undefined
}

function setChild(container: Node, step: string | number, child: Node): boolean {
  if (container instanceof Map) return container.set(String(step), child) !== undefined
  if (!Array.isArray(container) || typeof step !== 'number') return false
  while (container.length < step) container.push(null)
  container[step] = child
  return true
}

/** Converts a field of an object, or an element of a list. */
function toNode(holder: Json, name: string): Node {
  const value = holder[name]
  if (Array.isArray(value)) return Object.keys(value).map(index => toNode(value as unknown as Json, index))
  if (isObject(value)) return new Map(Object.keys(value).map(inner => [inner, toNode(value, inner)]))
  if (typeof value === 'number') return findLongInteger(holder, name, value) ?? value
  return typeof value === 'string' || typeof value === 'boolean' ? value : null
}

function write(node: Node): string {
  if (Array.isArray(node)) return `[${node.map(write).join(',')}]`
  if (!(node instanceof Map)) return JSON.stringify(node)
  return `{${Array.from(node, ([name, child]) => `${JSON.stringify(name)}:${write(child)}`).join(',')}}`
}
