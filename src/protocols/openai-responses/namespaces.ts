// Gives the tools of namespaces names for dialects that have no namespaces, and finds a tool by such a name. An agent
// sends each MCP server as a namespace, and two servers may have a tool of the same name.
//
// The names of offered tools depend on the tools of the request only. So each turn of a conversation has the same names,
// which prompt caches need, and the writer of the answer finds the names that the reader of the request gave.

import { createHash } from 'node:crypto'
import { requireText } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Each dialect allows names of this length. */
const NAME_CHARS_MAX = 64
const HASH_CHARS = 8
/** How much of a long name is kept in front of the hash. The start names the server, and the end names the tool. */
const START_CHARS = 24
const END_CHARS = 30

const SEPARATOR = '__'

export interface NamespacedTool {
  readonly namespace: string
  readonly name: string
}

export class NamespaceNames {
  /** Names of tools outside of namespaces, which stay as they are. */
  readonly #plainNames = new Set<string>()
  readonly #written = new Map<string, string>()
  readonly #tools = new Map<string, NamespacedTool>()
  /** The written names of the offered tools, by the name of the tool and by its namespace. */
  readonly #byName = new Map<string, string[]>()
  readonly #byNamespace = new Map<string, string[]>()

  /** `tools` are those of the request. Whether they are valid is checked elsewhere. */
  constructor(tools: unknown) {
    const all = Array.isArray(tools) ? tools.filter(isObject) : []
    for (const { type, name } of all) if (type !== NAMESPACE && typeof name === 'string') this.#plainNames.add(name)
    for (const { type, name: namespace, tools: members } of all) {
      if (type !== NAMESPACE || typeof namespace !== 'string' || !Array.isArray(members)) continue
      for (const tool of members as readonly unknown[]) this.#offer(namespace, tool)
    }
  }

  #offer(namespace: string, tool: unknown): void {
    if (!isObject(tool) || !isOffered(tool) || typeof tool.name !== 'string') return
    const { name } = tool
    if (this.#written.has(keyOf({ namespace, name }))) return
    const written = this.write({ namespace, name })
    addTo(this.#byName, name, written)
    addTo(this.#byNamespace, namespace, written)
  }

  /** Also for tools that the request does not offer, but that were called before. */
  write(tool: NamespacedTool): string {
    const key = keyOf(tool)
    const known = this.#written.get(key)
    if (known !== undefined) return known
    const wanted = joinName(tool)
    let written = wanted
    for (let n = 0; written.length > NAME_CHARS_MAX || this.#isTaken(written); n++) written = shorten(wanted, key, n)
    this.#written.set(key, written)
    this.#tools.set(written, tool)
    return written
  }

  #isTaken(name: string): boolean {
    return this.#plainNames.has(name) || this.#tools.has(name)
  }

  /** Reads the name of a tool from a call, a result or a choice of tools. */
  read(json: Json, at: string): string {
    const name = requireText(json, 'name', at)
    if ((json.namespace ?? undefined) === undefined) return name
    return this.write({ namespace: requireText(json, 'namespace', at), name })
  }

  find(written: string): NamespacedTool | undefined {
    return this.#tools.get(written)
  }

  /** The names of all tools that a choice may mean by a name without a namespace. */
  namesLike(name: string): readonly string[] {
    return this.#plainNames.has(name) ? [name] : (this.#byName.get(name) ?? [name])
  }

  namesIn(namespace: string): readonly string[] {
    return this.#byNamespace.get(namespace) ?? []
  }
}

export const NAMESPACE = 'namespace'

/** A deferred tool is found by a search of the provider, which other dialects do not have. */
export const isOffered = ({ type, defer_loading: isDeferred }: Json): boolean =>
  (type === 'function' || type === 'custom') && isDeferred !== true

const keyOf = ({ namespace, name }: NamespacedTool): string => JSON.stringify([namespace, name])

function addTo(lists: Map<string, string[]>, key: string, value: string): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}

function joinName({ namespace, name }: NamespacedTool): string {
  const start = namespace.endsWith(SEPARATOR) ? namespace : namespace + SEPARATOR
  return (start + name).replace(/[^a-zA-Z0-9_-]/g, '_')
}

/** Adds a hash of the tool instead of a number, so that the name does not change when other tools come or go. */
function shorten(name: string, key: string, attempt: number): string {
  const hash = createHash('sha256').update(`${attempt} ${key}`).digest('hex').slice(0, HASH_CHARS)
  const isShort = name.length + 1 + HASH_CHARS <= NAME_CHARS_MAX
  return `${isShort ? name : `${name.slice(0, START_CHARS)}_${name.slice(-END_CHARS)}`}_${hash}`
}
