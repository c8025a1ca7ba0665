// The command that installs newer provider data.

import { text } from '../input.ts'
import { fieldLines, jsonText } from '../print.ts'
import type { CliCommand } from './command.ts'
import { defineMachineCommand, printLine } from './command.ts'

export const providerRows: Readonly<Record<string, CliCommand>> = {
  'providers update': defineMachineCommand(
    {
      usage: 'providers update <file or -> --sha256 <checksum>',
      description:
        'install newer models and prices of the shipped providers from a file (-: standard input), if it has this ' +
        'SHA-256 checksum; the next start uses them',
      positionals: ['file'],
      options: ['sha256'],
    },
    async ({ json, file, sha256 }) => {
      const { updateProviders } = await import('../provider-update.ts')
      const result = updateProviders(text(file), text(sha256))
      if (json === true) return printLine(jsonText(result))
      for (const line of fieldLines(result)) printLine(line)
      printLine('The next start of the gateway uses the new data.')
    },
  ),
}
