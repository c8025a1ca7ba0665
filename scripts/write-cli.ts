// docs/reference/cli.md, from the command rows in src/cli/commands.

import { commandGroups } from '../src/cli/commands/commands.ts'
import { commandsOf, usageLines } from '../src/cli/help.ts'

const sentence = (text: string): string =>
  `${text[0]!.toUpperCase()}${text.slice(1)}.`.replaceAll('*', '\\*').replaceAll('<', '\\<')

function section(title: string, words: readonly string[]): string {
  const commands = words.flatMap(commandsOf).map(([name, row]) => {
    const usage = usageLines({ ...row, description: '' }).filter(line => line.trim() !== '')
    return `### ${name}\n\n\`\`\`sh not run\n${usage.join('\n')}\n\`\`\`\n\n${sentence(row.description)}\n`
  })
  return `## ${title}\n\n${commands.join('\n')}`
}

export function writeCli(): string {
  return `# Commands

Every command of \`weir\`, with its usage and what it does. This page is generated from the command rows in
\`src/cli/commands\` (\`npm run docs\`); \`weir help\` and \`weir help <command>\` print the same.

- From a checkout the program is \`bin/weir\`, or \`npm run weir --\`.
- Commands use the data folder \`WEIR_DATA\` and the other [settings](settings.md) of the environment. If a gateway runs on
  that folder, it carries out the command; otherwise the command opens the folder itself.
- With a [service token](../guides/service-tokens.md) in \`WEIR_TOKEN\` and the address of a gateway in \`WEIR_URL\`, commands
  work on that gateway instead. Commands that need the machine of the gateway refuse this; \`check\` and \`doctor\` always
  examine this machine.
- Commands that print an answer take \`--json\`: the answer of the endpoint to which the command sends its request
  ([management API](../guides/management-api.md)).
- In a terminal, tables fit its width: long texts end with \`…\`, while ids, model names, amounts and times stay whole.
  Through a pipe, and with \`--json\`, nothing is shortened.
- \`audit\`, \`backup\`, \`restore\`, \`records export\` and the upgrade of data that an earlier version has written show
  their progress on standard error if it is a terminal.
- [\`weir completion\`](#completion) prints a script with which bash, zsh and fish complete commands, options and values.
- Exit codes: 0 success; 1 the command failed or found a problem; 2 wrong usage.
- Answers go to standard output, errors and warnings to standard error.

${commandGroups.map(([title, words]) => section(title, words)).join('\n')}`
}
