// The work of weir connect: prints how to point a program at the gateway, or writes it to the program's configuration files.

import { printLine } from '../commands/command.ts'
import type { CommandFields } from '../connect.ts'
import { text } from '../input.ts'
import { harmlessLines, jsonText, tableLines } from '../print.ts'
import { Problem, UsageProblem } from '../problem.ts'
import { isOutputPublic } from '../public-output.ts'
import { warnIfUnencrypted } from '../remote.ts'
import type { GatewayAddress } from './gateway-address.ts'
import { gatewayAddress } from './gateway-address.ts'
import type { AccessPart } from './keep-settings.ts'
import { findSettings, keepFields } from './keep-settings.ts'
import type { GatewayAccess, Program, ProgramFile, SetUp } from './program.ts'
import { programs } from './programs.ts'
import { setUpLines, textOfFile } from './set-up-text.ts'
import type { PlannedFile } from './write-files.ts'
import { fieldsOfFile, pathOf, planFile, writePlannedFile } from './write-files.ts'

const KEY_PLACEHOLDER = 'wk-…'

export async function connectProgram(input: CommandFields): Promise<void> {
  try {
    await connect(input)
  } catch (fault) {
    // A path that leads in a circle, through a file, or to a place that the user may not read.
    const { path, syscall, message } = fault as NodeJS.ErrnoException
    if (path === undefined || syscall === undefined) throw fault
    throw new Problem(`${path} cannot be used: ${message}.`)
  }
}

async function connect(input: CommandFields): Promise<void> {
  if (input.program === undefined) return listPrograms(input)
  const id = findProgram(text(input.program))
  const program = programs[id]!
  const access = await readAccess(input, program)
  const isWrite = input.write === true || input['dry-run'] === true
  if (isWrite) return write(id, access, input)
  const connection = { ...access, ...(await gatewayAddress(input.url)) }
  warnOfDoubt(connection)
  const shown = isOutputPublic() ? { ...connection, key: KEY_PLACEHOLDER } : connection
  if (shown.key !== connection.key) warn('others can read the file that the output goes to, so the key is left out')
  const setUp = program.setUp(shown, input.model !== undefined)
  if (input.json === true) return printLine(jsonText({ program: id, title: program.title, ...setUpFields(setUp) }))
  const options = optionsToRepeat(input, connection)
  for (const line of setUpLines({ id, program, setUp, pathOf, options })) printLine(line)
}

/** Without the text of the key, which would be in the history of the shell. */
function optionsToRepeat({ model, url, key }: CommandFields, connection: GatewayAccess): readonly string[] {
  const isKeyInShell = process.env.WEIR_KEY?.trim() === connection.key
  return [
    ...(model === undefined ? [] : [`--model ${connection.model}`]),
    ...(url === undefined ? [] : [`--url ${connection.url}`]),
    ...(key === undefined || isKeyInShell ? [] : [`--key ${key === '-' ? '-' : KEY_PLACEHOLDER}`]),
  ]
}

const warn = (message: string): void => void process.stderr.write(`weir: warning: ${message}\n`)

function warnOfDoubt({ doubt }: GatewayAddress): void {
  if (doubt !== undefined) warn(`${doubt}. Start Weir first, set WEIR_DATA to its data folder, or use --url`)
}

function listPrograms({ json }: CommandFields): void {
  const rows = Object.entries(programs).map(([program, { title, about }]) => ({ program, title, about }))
  if (json === true) return printLine(jsonText({ data: rows }))
  for (const line of [...tableLines(rows), '', 'Settings of a program: weir connect claude-code']) printLine(line)
}

/** The id of a program, by its id or another name of it. */
const findProgram = (named: string): string =>
  Object.keys(programs).find(id => id === named || programs[id]!.aliases?.includes(named))!

type Access = Omit<GatewayAccess, 'url'>

const MODEL = /^[\w.:@/+-]{1,200}$/
/** Characters that need no quotes in a file of variables or in a shell. */
const KEY = /^[\w.-]{8,200}$/

async function readAccess(input: CommandFields, { model }: Program): Promise<Access> {
  const chosen = input.model === undefined ? model : text(input.model)
  if (!MODEL.test(chosen)) {
    throw new UsageProblem('--model must be the name of a model, such as gpt-5 or anthropic/claude-sonnet-5.')
  }
  const given = input.key === '-' ? (await Bun.stdin.text()).trim() : (input.key ?? process.env.WEIR_KEY?.trim())
  if (given !== undefined && given !== '' && !KEY.test(text(given))) {
    const place = input.key === undefined ? 'WEIR_KEY' : '--key'
    throw new UsageProblem(`${place} must be an API key of Weir (wk-…), whole. Create one: weir keys create`)
  }
  return { key: text(given) || KEY_PLACEHOLDER, model: chosen }
}

const setUpFields = ({ files = [], ...others }: SetUp): CommandFields => ({
  files: files.map(file => ({ path: pathOf(file), content: textOfFile(file) })),
  ...others,
})

/** What a file may keep, because the command does not say it. */
const partsNotGiven = (input: CommandFields): readonly AccessPart[] => [
  ...(input.url === undefined && !process.env.WEIR_URL?.trim() ? (['url'] as const) : []),
  ...(input.model === undefined ? (['model'] as const) : []),
]

async function write(id: string, given: Access, input: CommandFields): Promise<void> {
  const { title, setUp } = programs[id]!
  const found = findSettings(setUp, fieldsOfFile)
  const kept = found.url === undefined ? [] : partsNotGiven(input)
  const address = kept.includes('url') ? { url: found.url! } : await gatewayAddress(input.url)
  const connection = {
    ...given,
    ...address,
    ...(kept.includes('model') && MODEL.test(found.model ?? '') && { model: found.model! }),
  }
  if (setUp(connection).files === undefined) {
    throw new Problem(`${title} has no configuration file that Weir can write. Follow: weir connect ${id}`)
  }
  if (kept.includes('url')) warnIfUnencrypted(connection.url)
  else warnOfDoubt(address)
  const { files: _, ...others } = setUp(connection)
  const files = keepFields(setUp, connection, kept, fieldsOfFile)
  const hasKey = connection.key !== KEY_PLACEHOLDER
  if (!hasKey && JSON.stringify(files).includes(KEY_PLACEHOLDER)) {
    throw new UsageProblem('The key is missing. Set WEIR_KEY, or use --key. Create a key: weir keys create')
  }
  // All files are planned before the first one is written: an error in one of them changes nothing.
  const plans = files.map(file => planFile(file, connection.key))
  for (const plan of plans) checkRepository(plan, input['into-repository'] === true)
  const isDryRun = input['dry-run'] === true
  const say = (line: string): void => (input.json === true ? undefined : printLine(harmlessLines(line)))
  if (kept.length > 0) {
    say(`Kept: ${kept.map(part => `the ${part} ${connection[part]}`).join(', ')}. Change it with --url or --model.`)
  }
  for (const file of files) warnOfOverriding(file)
  for (const plan of plans) planLines(plan, connection.key).forEach(say)
  const changed = plans.filter(({ changes, needsMode }) => changes.length > 0 || needsMode)
  const written = isDryRun ? [] : changed.map(plan => ({ path: plan.path, copy: writePlannedFile(plan) ?? null }))
  if (input.json === true) {
    const planned = plans.map(({ path, changes }) => ({
      path,
      changes: changes.map(change => changeLine(change, connection.key)),
    }))
    return printLine(jsonText({ program: id, files: planned, written }))
  }
  say('')
  if (changed.length === 0) say('No changes.')
  else if (isDryRun) say('Nothing was written (--dry-run).')
  else for (const { path, copy } of written) say(`Wrote ${path}${copy === null ? '' : `; the old file is ${copy}`}.`)
  const rest = {
    ...others,
    ...(others.variables !== undefined && { variables: maskValues(others.variables, connection.key) }),
  }
  setUpLines({ id, program: { ...programs[id]!, notes: [] }, setUp: rest, pathOf })
    .slice(2)
    .forEach(say)
}

/** A key in a repository is soon on other machines, with the copy of the old file. */
function checkRepository({ realPath, repository, holdsKey, before }: PlannedFile, isAllowed: boolean): void {
  if (!holdsKey || repository === undefined) return
  if (!isAllowed) {
    throw new Problem(
      `${realPath} is in the repository ${repository}, and the key would be in it. Keep the file elsewhere, or use ` +
        '--into-repository if the repository ignores it.',
    )
  }
  const copy = before === undefined ? '' : ', also as the copy .before-weir'
  warn(`the repository ${repository} must ignore ${realPath}${copy}`)
}

/** A field of the file, or a variable of this shell, may keep the program from using the set-up. */
function warnOfOverriding(file: ProgramFile): void {
  const fields = fieldsOfFile(file)
  for (const { path, effect } of file.overriding ?? []) {
    const [holder, name] = path
    const inFile = path.reduce<unknown>((held, step) => (held as CommandFields | undefined)?.[step], fields)
    const inShell = holder === 'env' ? process.env[name!] : undefined
    const isSet = [inFile, inShell].some(value => value !== undefined && !/^(0|false|)$/i.test(text(value)))
    if (isSet)
      warn(`${path.join('.')} is set ${inFile === undefined ? 'in this shell' : `in ${pathOf(file)}`}: ${effect}`)
  }
}

const maskValues = (values: Readonly<Record<string, string>>, key: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.replaceAll(key, KEY_PLACEHOLDER)]))

function planLines({ path, realPath, changes, before, needsMode }: PlannedFile, key: string): readonly string[] {
  const state = before === undefined ? 'new file' : changes.length === 0 ? 'no changes' : 'changes'
  return [
    `${path} (${realPath === path ? '' : `link to ${realPath}; `}${state}${needsMode ? '; others can read it now, so it becomes readable for you alone' : ''})`,
    ...changes.map(change => `  ${changeLine(change, key)}`),
  ]
}

/** Old values may be secrets of other providers. */
const SECRET_NAME = /key|token|secret|password/i

function changeLine({ path, before, after }: PlannedFile['changes'][number], key: string): string {
  const name = path.join('.')
  const shown = (value: unknown): string => JSON.stringify(value).replaceAll(key, KEY_PLACEHOLDER)
  if (before === undefined) return `+ ${name}: ${shown(after)}`
  // An address may have a password or a key in it.
  const old = shown(before).replaceAll(
    /\/\/[^/\s"]*@|\?[^\s"]*/g,
    part => `${part.startsWith('/') ? '//' : '?'}(hidden)`,
  )
  return `~ ${name}: ${SECRET_NAME.test(name) ? '(hidden)' : old} → ${shown(after)}`
}
