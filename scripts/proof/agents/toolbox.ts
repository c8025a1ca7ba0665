// Finds an agent's tools by what they take, and fills in what they want to know.

import { listOf, recordOf, stringsOf } from '../../../tools/fake-upstream/body-fields.ts'
import type { ToolCall } from '../../../tools/fake-upstream/dialect.ts'
import type { Tool } from './offered.ts'

export interface Toolbox {
  readonly shell: Tool
  readonly read: Tool
  readonly change: Tool
}

export type Doing = 'read' | 'list' | 'change' | 'check'

/** A tool of the kind has a field for each of these, and a name that says so. */
const kinds = {
  shell: { named: /shell|bash|exec|command/i, takes: [/^(commands?|cmd)$/] },
  read: { named: /read/i, takes: [/^(?!dir).*path$/i] },
  edit: { named: /edit|replace/i, takes: [/^(?!dir).*path$/i, /^old_?(str|text)/i, /^new_?(str|text)/i] },
} as const

const namesIn = (tool: Tool): readonly string[] => Object.keys(recordOf(tool.schema.properties))

export function toolFor(tools: readonly Tool[], kind: keyof typeof kinds): Tool | undefined {
  const { named, takes } = kinds[kind]
  return tools.find(tool => named.test(tool.name) && takes.every(field => namesIn(tool).some(name => field.test(name))))
}

const commands: Readonly<Record<Doing, (file: string) => string>> = {
  read: file => `cat ${file}`,
  list: file => `ls ${file.replace(/[^/]*$/, '')}`,
  change: file => `sed -i 's/status: draft/status: final/' ${file}`,
  check: file => `wc -l ${file} && cat ${file}`,
}

/** What a field is given, by its name. */
const fields: readonly (readonly [RegExp, (file: string, command: string) => string])[] = [
  [/^(commands?|cmd)$/, (_, command) => command],
  [/^(?!dir).*path$/i, file => file],
  [/^old_?(str|text)/i, () => 'status: draft'],
  [/^new_?(str|text)/i, () => 'status: final'],
]
/** Fields that are filled though nobody requires them would only get in the way. */
const fillers: Readonly<Record<string, unknown>> = { boolean: false, number: 1, integer: 1, array: [], object: {} }

/** One command of a list of commands, or the words of one command. */
const listed = (name: string, command: string): readonly string[] =>
  name === 'commands' ? [command] : ['bash', '-lc', command]

/** The arguments in several pieces, cut inside words and characters of escapes. */
export function callOf(tool: Tool, doing: Doing, file: string): ToolCall {
  const command = commands[doing](file)
  const required = stringsOf(tool.schema.required)
  const given = Object.entries(recordOf(tool.schema.properties)).flatMap(([name, schema]) => {
    const [, value] = fields.find(([pattern]) => pattern.test(name)) ?? []
    const type = String(listOf(recordOf(schema).type)[0] ?? recordOf(schema).type).toLowerCase()
    if (value) return [[name, type === 'array' ? listed(name, value(file, command)) : value(file, command)]]
    return required.includes(name) ? [[name, fillers[type] ?? 'make the status final']] : []
  })
  // Claude Code takes `x_1` for a second result of `x`, and ids made of numbers are often so.
  return cutCall(`call_${doing}`, tool.name, Object.fromEntries(given))
}

export function cutCall(id: string, name: string, given: object): ToolCall {
  const text = JSON.stringify(given)
  return { id, name, arguments: text, cuts: text.match(/[^]{1,9}/g) ?? [text] }
}
