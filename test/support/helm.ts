// Renders the templates of the Helm chart. It knows only the part of Helm's template language that the chart uses, and
// throws on everything else.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

type Values = Record<string, unknown>

interface Scope {
  readonly root: Values
  readonly dot: unknown
  readonly variables: Readonly<Record<string, unknown>>
}

type Node = string | { readonly action: string; readonly body: Node[]; readonly otherwise: Node[] }

const OPENING = /^(if|with|range|define)\b/

/** Splits a template into texts and actions. `{{-` and `-}}` remove the white space beside them. */
function parse(template: string): Node[] {
  const stack: { action: string; body: Node[]; otherwise: Node[]; current: Node[] }[] = []
  const top: Node[] = []
  const add = (node: Node): void => void (stack.at(-1)?.current ?? top).push(node)
  let rest = template
  for (;;) {
    const found = /(\s*\{\{-|\{\{)\s*([\s\S]*?)\s*(-\}\}\s*|\}\})/.exec(rest)
    if (found === null) break
    add(rest.slice(0, found.index))
    rest = rest.slice(found.index + found[0].length)
    const action = found[2]!
    if (OPENING.test(action)) {
      const node = { action, body: [] as Node[], otherwise: [] as Node[] }
      stack.push({ ...node, current: node.body })
    } else if (action === 'else') {
      const open = stack.at(-1)!
      open.current = open.otherwise
    } else if (action === 'end') {
      const { action: opened, body, otherwise } = stack.pop()!
      add({ action: opened, body, otherwise })
    } else add({ action, body: [], otherwise: [] })
  }
  add(rest)
  if (stack.length > 0) throw new Error(`"${stack[0]!.action}" has no end`)
  return top
}

/** Words, texts in quotes, and expressions in parentheses. */
const words = (text: string): string[] => text.match(/"[^"]*"|\([^()]*\)|[^\s()]+/g) ?? []

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  value === '' ||
  value === 0 ||
  (typeof value === 'object' && Object.keys(value).length === 0)

class Renderer {
  readonly #named = new Map<string, Node[]>()

  define(nodes: readonly Node[]): void {
    for (const node of nodes) {
      if (typeof node === 'string' || !node.action.startsWith('define')) continue
      this.#named.set(JSON.parse(words(node.action)[1]!), node.body)
    }
  }

  render(nodes: readonly Node[], scope: Scope): string {
    return nodes.map(node => (typeof node === 'string' ? node : this.#run(node, scope))).join('')
  }

  #run({ action, body, otherwise }: Exclude<Node, string>, scope: Scope): string {
    const [name, ...rest] = words(action)
    const text = rest.join(' ')
    switch (name) {
      case 'define':
        return ''
      case 'if':
        return this.render(isEmpty(this.#value(text, scope)) ? otherwise : body, scope)
      case 'with': {
        const dot = this.#value(text, scope)
        return isEmpty(dot) ? this.render(otherwise, scope) : this.render(body, { ...scope, dot })
      }
      case 'range': {
        const [, key, value, of] = /^(\$\w+), (\$\w+) := (.*)$/.exec(text)!
        return Object.entries(this.#value(of!, scope) as Values)
          .sort(([one], [other]) => (one < other ? -1 : 1))
          .map(([each, one]) => this.render(body, { ...scope, variables: { [key!]: each, [value!]: one } }))
          .join('')
      }
      default:
        return String(this.#value(action, scope))
    }
  }

  #value(text: string, scope: Scope): unknown {
    const [first, ...functions] = text.split('|').map(part => part.trim())
    let value = this.#call(words(first!), scope)
    for (const each of functions) value = this.#call([...words(each), value], scope)
    return value
  }

  #call(parts: readonly unknown[], scope: Scope): unknown {
    const [name, ...texts] = parts
    const given = texts.map(part =>
      typeof part === 'string' ? this.#operand(part, scope, part === texts.at(-1)) : part,
    )
    switch (name) {
      case 'include':
        return this.render(this.#named.get(given[0] as string)!, { ...scope, dot: given[1] })
      case 'toYaml':
        return (Bun.YAML.stringify(given[0], null, 2) as string).trimEnd()
      case 'nindent':
        return `\n${String(given[1]).replace(/^/gm, ' '.repeat(Number(given[0])))}`
      case 'quote':
        return JSON.stringify(String(given[0]))
      case 'default':
        return isEmpty(given[1]) ? given[0] : given[1]
      case 'kindIs':
        return given[0] === (typeof given[1] === 'number' ? 'float64' : typeof given[1] === 'boolean' ? 'bool' : '')
      case 'ternary':
        return given[2] === true ? given[0] : given[1]
      case 'toJson':
        return JSON.stringify(given[0])
      case 'not':
        return isEmpty(given[0])
      case 'add':
        return given.reduce<number>((sum, each) => sum + Number(each), 0)
      case 'mul':
        return given.reduce<number>((product, each) => product * Number(each), 1)
      default:
        if (given.length > 0) throw new Error(`unknown function "${name}"`)
        return this.#operand(name as string, scope)
    }
  }

  #operand(text: string, { root, dot, variables }: Scope, mayBeText = false): unknown {
    if (text === '.') return dot
    if (text.startsWith('"')) return JSON.parse(text)
    if (/^\d+$/.test(text)) return Number(text)
    if (text in variables) return variables[text]
    if (/^\.[A-Z]/.test(text)) {
      let value: unknown = root
      for (const name of text.slice(1).split('.')) {
        if (typeof value !== 'object' || value === null || !(name in value)) throw new Error(`${text} does not exist`)
        value = (value as Values)[name]
      }
      return value
    }
    if (mayBeText) return text
    throw new Error(`cannot read "${text}"`)
  }
}

function merge(defaults: Values, given: Values): Values {
  const merged = { ...defaults }
  for (const [name, value] of Object.entries(given)) {
    const former = merged[name]
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
    merged[name] = isMap && typeof former === 'object' ? merge(former as Values, value as Values) : value
  }
  return merged
}

/** Returns the objects of each template, by its file name. */
export function renderChart(chart: string, given: Values = {}): Readonly<Record<string, Values>> {
  const read = (file: string): string => readFileSync(join(chart, file), 'utf8')
  const about = Bun.YAML.parse(read('Chart.yaml')) as Values
  const values = merge(Bun.YAML.parse(read('values.yaml')) as Values, given)
  const root = { Values: values, Release: { Name: 'test' }, Chart: { AppVersion: about.appVersion } }
  const renderer = new Renderer()
  renderer.define(parse(read('templates/_helpers.tpl')))
  const files = readdirSync(join(chart, 'templates')).filter(file => file.endsWith('.yaml'))
  const texts = files.map(file => {
    const text = renderer.render(parse(read(join('templates', file))), { root, dot: root, variables: {} })
    return [file, Bun.YAML.parse(text) as Values | null] as const
  })
  return Object.fromEntries(texts.filter((entry): entry is readonly [string, Values] => entry[1] !== null))
}
