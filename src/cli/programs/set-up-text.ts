// The set-up of a program as lines for people: on the terminal and in the guide pages.

import { editFile } from './edit-file.ts'
import type { Program, ProgramFile, SetUp } from './program.ts'

/** What a new file has. */
export const textOfFile = (file: ProgramFile): string => editFile(file, undefined, file.names[0]).text

export interface ShownSetUp {
  readonly id: string
  readonly program: Program
  readonly setUp: SetUp
  readonly pathOf: (file: ProgramFile) => string
  /** The options of this run that a run with --write needs, too. */
  readonly options?: readonly string[]
}

const indented = (text: string): readonly string[] =>
  text
    .trimEnd()
    .split('\n')
    .map(line => (line === '' ? '' : `  ${line}`))

/** The lines that `weir connect` prints. */
export function setUpLines({
  id,
  program: { title, notes = [] },
  setUp,
  pathOf,
  options = [],
}: ShownSetUp): readonly string[] {
  const { files = [], variables = {}, steps = [], commands = [], code = [], start } = setUp
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}=${value}`)
  const part = (head: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : [head, '', ...lines, '']
  return [
    title,
    '',
    ...files.flatMap(file => part(`In ${pathOf(file)}:`, indented(textOfFile(file)))),
    ...part(
      'In the shell:',
      indented(exports.join('\n')).filter(line => line !== ''),
    ),
    ...part(
      'Run:',
      commands.map(command => `  ${command}`),
    ),
    ...part(
      commands.length > 0 ? 'Or in its windows:' : 'In its windows:',
      steps.map(step => `  ${step}`),
    ),
    ...code.flatMap(({ install, text }) => part(`After ${install}:`, indented(text))),
    ...(start === undefined ? [] : [`Then start it: ${start}`]),
    ...(files.length > 0
      ? [`Write the files, and keep what else they have: weir ${['connect', id, ...options, '--write'].join(' ')}`]
      : []),
    ...notes.map(note => `- ${note.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')}`),
  ]
}
