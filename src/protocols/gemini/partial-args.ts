// The arguments of a call that come in pieces: each names its place by a JSONPath, and a text may come in several.

import { bounds } from '../../base/bounds.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

type Leaf = string | number | boolean | null
type Node = Leaf | Map<string, Node> | Node[]

/** Deeper and longer than any arguments are. */
const STEPS_MAX = 64
const INDEX_MAX = 10_000

export class PartialArgs {
  readonly #root = new Map<string, Node>()
  /** Texts that go on, by their paths. */
  readonly #growing = new Set<string>()
  #chars = 0

  /** False for a piece that cannot be put anywhere. */
  take(piece: unknown): boolean {
    if (!isObject(piece) || typeof piece.jsonPath !== 'string') return false
    const { jsonPath: path } = piece
    const steps = stepsOf(path)
    const value = valueOf(piece)
    if (steps === undefined || value === undefined) return false
    this.#chars += path.length + (typeof value === 'string' ? value.length : 8)
    if (this.#chars > bounds.frameBytesMax) return false
    const goesOn = this.#growing.has(path)
    if (piece.willContinue === true) this.#growing.add(path)
    else this.#growing.delete(path)
    const grown = (old: Node | undefined): Leaf =>
      goesOn && typeof old === 'string' && typeof value === 'string' ? old + value : value
    return put(this.#root, steps, grown)
  }

  /** Fields that came whole. */
  add(args: Json): void {
    for (const name of Object.keys(args)) this.#root.set(name, nodeOf(args[name]))
  }

  /** As JSON. */
  get text(): string {
    return write(this.#root)
  }
}

const STEP = /\.([^.[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y

/** Names and numbers, as in `$.places[0].name` or `$['a place']`. */
function stepsOf(path: string): readonly (string | number)[] | undefined {
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
  const isFitting = steps.every(step => typeof step === 'string' || step <= INDEX_MAX)
  return typeof steps[0] === 'string' && isFitting ? steps : undefined
}

function valueOf({ stringValue, numberValue, boolValue, nullValue }: Json): Leaf | undefined {
  if (typeof stringValue === 'string') return stringValue
  if (typeof numberValue === 'number') return numberValue
  if (typeof boolValue === 'boolean') return boolValue
  return nullValue === undefined ? undefined : null
}

/** False where something else stands in the way. */
function put(root: Node, steps: readonly (string | number)[], change: (old: Node | undefined) => Leaf): boolean {
  let place: Node = root
  for (let at = 0; at < steps.length; at++) {
    const [step, next] = [steps[at]!, steps[at + 1]]
    const old = childOf(place, step)
    const fresh = (): Node => (typeof next === 'number' ? [] : new Map<string, Node>())
    const child: Node = next === undefined ? change(old) : isPlace(old) ? old : fresh()
    if (!setChild(place, step, child)) return false
    place = child
  }
  return true
}

const isPlace = (node: Node | undefined): node is Map<string, Node> | Node[] =>
  typeof node === 'object' && node !== null

function childOf(place: Node, step: string | number): Node | undefined {
  if (place instanceof Map) return place.get(String(step))
  return Array.isArray(place) && typeof step === 'number' ? place[step] : undefined
}

function setChild(place: Node, step: string | number, child: Node): boolean {
  if (place instanceof Map) return place.set(String(step), child) !== undefined
  if (!Array.isArray(place) || typeof step !== 'number') return false
  while (place.length < step) place.push(null)
  place[step] = child
  return true
}

function nodeOf(value: unknown): Node {
  if (Array.isArray(value)) return value.map(nodeOf)
  if (isObject(value)) return new Map(Object.keys(value).map(name => [name, nodeOf(value[name])]))
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}

function write(node: Node): string {
  if (Array.isArray(node)) return `[${node.map(write).join(',')}]`
  if (!(node instanceof Map)) return JSON.stringify(node)
  return `{${Array.from(node, ([name, child]) => `${JSON.stringify(name)}:${write(child)}`).join(',')}}`
}
