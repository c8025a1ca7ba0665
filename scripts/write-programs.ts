// docs/guides/agents.md and docs/guides/libraries.md, from the table of programs that `weir connect` reads.

import type { Program, ProgramFile, SetUp } from '../src/cli/programs/program.ts'
import { programs } from '../src/cli/programs/programs.ts'
import { textOfFile } from '../src/cli/programs/set-up-text.ts'
import type { Trial } from './proof/agents/rows.ts'
import { nameOfTrial, trials } from './proof/agents/rows.ts'

const dialectTitles: Readonly<Record<Program['speaks'], string>> = {
  'openai-chat': 'Chat',
  'openai-responses': 'Responses',
  'anthropic-messages': 'Messages',
  'gemini': 'Gemini',
}

const URL = 'http://127.0.0.1:8080'
const KEY = 'wk-…'

const block = (info: string, text: string): string => `\`\`\`${info}\n${text.trimEnd()}\n\`\`\`\n`

/** `~/.codex/config.toml` */
const placeOf = ({ folder: [, folder], names: [name] }: ProgramFile): string =>
  `~/${folder === '' ? '' : `${folder}/`}${name}`

/** Breaks a paragraph into lines of the width of the other pages. */
function wrap(text: string, first = '', next = ''): string {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const longer = lines.length === 0 ? first + word : `${lines.at(-1)} ${word}`
    if (lines.length === 0) lines.push(longer)
    else if (longer.length > 120) lines.push(next + word)
    else lines[lines.length - 1] = longer
  }
  return lines.join('\n')
}

/** The programs that were tested, with their versions. */
function triedText(id: string): string {
  const tried = trials.filter(({ program }) => program === id).map(nameOfTrial)
  return tried.length === 0
    ? 'Not tried with the program itself: a test sends requests in the form that is documented.'
    : `Tried with ${tried.join(' and ')}.`
}

function setUpText({ files = [], variables = {}, steps = [], commands = [], code = [], start }: SetUp): string {
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}=${value}`)
  const run = [...exports, ...commands, ...(code.length === 0 && start !== undefined ? [start] : [])]
  return [
    ...files.map(
      file => `\`${placeOf(file)}\`:\n\n${block(file.format === 'env' ? '' : file.format, textOfFile(file))}`,
    ),
    ...(run.length === 0 ? [] : [`In the shell:\n\n${block('sh not run', run.join('\n'))}`]),
    ...(steps.length === 0 ? [] : [`In its windows:\n\n${steps.map((step, at) => `${at + 1}. ${step}`).join('\n')}\n`]),
    ...code.map(({ language, install, text }) => `After \`${install}\`:\n\n${block(language, text)}`),
  ].join('\n')
}

function section(id: string, program: Program): string {
  const { title, about, speaks, model, setUp, notes = [] } = program
  const shown = setUp({ url: URL, key: KEY, model })
  const head = `${title} is ${about}. It speaks ${dialectTitles[speaks]} to Weir. ${triedText(id)}`
  return `## ${title}

${wrap(head)}

${block('sh', `weir connect ${id}`)}
${setUpText(shown)}${notes.length === 0 ? '' : `\n${notes.map(note => wrap(note, '- ', '  ')).join('\n')}\n`}`
}

const sectionsOf = (...kinds: readonly Program['kind'][]): string =>
  Object.entries(programs)
    .filter(([, { kind }]) => kinds.includes(kind))
    .map(([id, program]) => section(id, program))
    .join('\n')

const introduction = `\`weir connect <program>\` prints the settings of a program. \`--write\` writes them to its configuration files: it prints
what changes, keeps everything else in the files, and leaves a copy of each old file beside it
(\`settings.json.before-weir\`). A file with a key becomes readable for its owner alone. \`--dry-run\` only prints what would
change. The key is that of the variable \`WEIR_KEY\`, or of \`--key\`; \`--model\` names another model, and \`--url\` another
gateway than the one that runs on the data folder of this machine. A second run without them keeps those of the files.

A file with a key is not written into a folder of git: \`--into-repository\` allows it, if the repository ignores the file
and its copy. Files that are not UTF-8, and files whose text cannot be changed without risk, are refused.`

const placeholders = `Below, \`${URL}\` is the gateway and \`${KEY}\` your Weir key. A model is a name as in \`GET /v1/models\`,
with or without its provider in front, or a [model name that you defined](model-names.md).`

const upstreamTitles = { ...dialectTitles, ark: 'Ark' } as const

function trialRow(trial: Trial): string {
  const { speaks } = programs[trial.program]!
  const others = Object.entries(upstreamTitles).flatMap(([dialect, title]) => (dialect === speaks ? [] : [title]))
  return `| ${nameOfTrial(trial)} | ${dialectTitles[speaks]} | ${others.join(', ')} |`
}

/** Agents and editors. */
export const writeAgents = (): string => `# Connect coding agents and editors

This page is for developers who use coding agents. Each of them works with every model, also of other vendors. Give the
key a [budget](accounts.md#budgets): agents make many calls. It is generated from the table in
\`src/cli/programs/programs.ts\` (\`npm run docs\`). For libraries see [libraries](libraries.md).

${introduction}

\`\`\`sh
weir connect
weir connect claude-code --model gpt-5 --write --dry-run
\`\`\`

${placeholders}

${sectionsOf('agent', 'editor')}
## What goes wrong

| symptom | what to do |
|---|---|
| 401 | the program does not use the Weir key: check the variable, and that no other login is active |
| 402 | the balance or a budget is used up: [spending](spending.md) |
| 404 \`model_unknown\` | the message names similar models; \`GET /v1/models\` lists all |
| 400 \`service_unpriced\` | the agent asks for a paid tool without a price: [prices](../reference/price-format.md#tools-and-fields) |

## What was tested

\`bin/weir-bun scripts/proof/agents.ts\` installs the programs from npm and PyPI, sets them up with \`weir connect\`, and lets
each change a file, with an upstream of every dialect but its own. A run passes if the file is changed, every tool result
arrived, no request was refused, the reasoning state came back, \`X-Weir-Loss\` agrees with the records, and the balance
is charged. On 16 November 2026, on Linux x64 with Node 20.20, all of these passed:

| program | speaks | upstreams |
|---|---|---|
${trials
  .filter(({ code }) => code === undefined)
  .map(trialRow)
  .join('\n')}

\`test/agents\` replays the requests of these runs, shortened, in every run of the tests.
`

export const writeLibraries = (): string => `# Connect libraries

This page is for developers who call models with a library. The official SDKs of OpenAI, Anthropic and Google need
another base URL and nothing else: see [dialects](../how-it-works/dialects.md). It is generated from the table in
\`src/cli/programs/libraries.ts\` (\`npm run docs\`). For coding agents see [agents](agents.md).

\`weir connect <library>\` prints an example with your address and model. Each example asks a question whose answer needs a
tool.

${placeholders}

${sectionsOf('library')}`
