// Finds an agent's tools by their names and parameters, and fills in the parameters.

import { listOf, recordOf, stringsOf } from '../../../tools/fake-upstream/body-fields.ts'
import type { ToolCall } from '../../../tools/fake-upstream/dialect.ts'
import type { Tool } from './offered.ts'

export interface Toolbox {
  readonly shell: Tool
  readonly read: Tool
  readonly change: Tool
}

export type Step = 'read' | 'list' | 'change' | 'check'

/** A tool belongs to a kind if its name matches, and if it has a field for each pattern. */
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

const commands: Readonly<Record<Step, (file: string) => string>> = {
  read: file => `cat ${file}`,
  list: file => `ls ${file.replace(/[^/]*$/, '')}`,
  change: file => `sed -i 's/status: draft/status: final/' ${file}`,
  check: file => `wc -l ${file} && cat ${file}`,
}

/** The value of a field, by its name. */
const fields: readonly (readonly [RegExp, (file: string, command: string) => string])[] = [
  [/^(commands?|cmd)$/, (_, command) => command],
  [/^(?!dir).*path$/i, file => file],
  [/^old_?(str|text)/i, () => 'status: draft'],
  [/^new_?(str|text)/i, () => 'status: final'],
]
/** Values of required fields without a row above. Optional ones stay empty. */
const fillers: Readonly<Record<string, unknown>> = { boolean: false, number: 1, integer: 1, array: [], object: {} }

/** A list of commands with one command, or the words of one command. */
const listed = (name: string, command: string): readonly string[] =>
  name === 'commands' ? [command] : ['bash', '-lc', command]

/** A tool call whose arguments arrive in several pieces, cut inside words and escape sequences. */
export function callOf(tool: Tool, step: Step, file: string): ToolCall {
  const command = commands[step](file)
  const required = stringsOf(tool.schema.required)
  const values = Object.entries(recordOf(tool.schema.properties)).flatMap(([name, schema]) => {
    const [, value] = fields.find(([pattern]) => pattern.test(name)) ?? []
    const type = String(listOf(recordOf(schema).type)[0] ?? recordOf(schema).type).toLowerCase()
    if (value) return [[name, type === 'array' ? listed(name, value(file, command)) : value(file, command)]]
    return required.includes(name) ? [[name, fillers[type] ?? 'make the status final']] : []
  })
  // The id has no number: Claude Code regards `x_1` as a second result of `x`.
  return cutCall(`call_${step}`, tool.name, Object.fromEntries(values))
}

export function cutCall(id: string, name: string, values: object): ToolCall {
  const text = JSON.stringify(values)
  return { id, name, arguments: text, cuts: text.match(/[^]{1,9}/g) ?? [text] }
}
