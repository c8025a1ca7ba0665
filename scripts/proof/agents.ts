// Runs coding agents and libraries through the gateway on upstreams of other dialects than their own. Each is installed
// from npm or PyPI and set up by `weir connect`; an agent edits a file and runs commands, a library calls a tool. A
// scripted player (agents/player.ts) takes the place of the model. Exits with 1 if a run fails.
//
//   bin/weir-bun scripts/proof/agents.ts [--agent codex] [--upstream gemini] [--installed folder] [--verbose]
//                                        [--record folder]
//
// Not part of the tests, because it needs the registries and a few gigabytes. `--record` writes the requests of each
// program, shortened, for test/agents.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { GatewayAccess } from '../../src/cli/programs/program.ts'
import { programs } from '../../src/cli/programs/programs.ts'
import type { Dialect } from '../../test/dialects/upstreams.ts'
import { dialects, modelOf, startDialects } from '../../test/dialects/upstreams.ts'
import { playerOf, task, weather } from './agents/player.ts'
import { nameOfRecording, recordingOf } from './agents/record.ts'
import type { Trial } from './agents/rows.ts'
import { nameOfTrial, trials } from './agents/rows.ts'
import type { AnsweredRequest } from './agents/tap.ts'
import { startTap } from './agents/tap.ts'
import { print } from './output.ts'

const { values: options } = parseArgs({
  options: {
    agent: { type: 'string' },
    upstream: { type: 'string' },
    installed: { type: 'string' },
    record: { type: 'string' },
    verbose: { type: 'boolean' },
  },
})
const runMs = 180_000

interface Exit {
  readonly code: number | null
  readonly output: string
}

interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Record<string, string>
}

function run({ program, args, cwd, env }: Command): Promise<Exit> {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: runMs })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', bytes => void (output += String(bytes)))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => resolve({ code, output }))
  })
}

const path = process.env.PATH ?? '/usr/bin:/bin'

async function install(folder: string, wanted: readonly Trial[]): Promise<void> {
  const specs = (from: Trial['from'], mark: string): readonly string[] =>
    wanted
      .filter(trial => trial.from === from)
      .flatMap(trial => [`${trial.package}${mark}${trial.version}`, ...(trial.others ?? [])])
  const npm = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', ...specs('npm', '@')]
  const pip = ['-m', 'pip', 'install', '--quiet', ...specs('pip', '==')]
  const python = join(folder, 'python')
  for (const [program, args, isWanted] of [
    ['npm', npm, specs('npm', '@').length > 0],
    ['python3', ['-m', 'venv', python], specs('pip', '==').length > 0],
    [join(python, 'bin/python'), pip, specs('pip', '==').length > 0],
  ] as const) {
    if (!isWanted) continue
    print(`${program} ${args.join(' ')}`)
    const env = { PATH: path, HOME: process.env.HOME ?? folder }
    const { code, output } = await run({ program, args, cwd: folder, env })
    if (code !== 0) throw new Error(`${program} failed:\n${output}`)
  }
}

const ROOT = join(import.meta.dir, '..', '..')

/** Sets up the program like its user, and returns the command that runs it. */
async function setUp({ trial, installed }: Pair, connection: GatewayAccess, home: string): Promise<readonly string[]> {
  const { url, key, model } = connection
  const modules = join(installed, 'node_modules')
  const { files = [], commands = [], code = [] } = programs[trial.program]!.setUp(connection)
  const env = { ...bareEnv(home), PATH: `${join(modules, '.bin')}:${path}` }
  const steps = [...commands]
  if (files.length > 0) {
    steps.push(`${join(ROOT, 'bin/weir')} connect ${trial.program} --write --url ${url} --key ${key} --model ${model}`)
  }
  for (const step of steps) {
    const { code: exit, output } = await run({ program: 'sh', args: ['-c', step], cwd: home, env })
    if (exit !== 0) throw new Error(`${step} failed:\n${output}`)
  }
  const example = code.find(({ language }) => language === trial.code)
  if (example === undefined) {
    const [program, ...args] = trial.command!(task.prompt)
    return [join(trial.from === 'npm' ? modules : join(installed, 'python/bin'), program!), ...args]
  }
  const isPython = example.language === 'python'
  // JavaScript looks for packages from the folder of the file.
  const file = join(installed, isPython ? 'weir_example.py' : 'weir-example.mjs')
  writeFileSync(file, example.text)
  return [isPython ? join(installed, 'python/bin/python') : 'node', file]
}

/** Its context is large enough for the system prompts of the agents. */
const model = {
  id: 'player',
  contextTokens: 400_000,
  outputTokensMax: 64_000,
  price: { input: '1', output: '2', cacheRead: '0.5' },
}

interface Pair {
  readonly trial: Trial
  readonly upstream: Dialect
  readonly installed: string
}

interface Outcome {
  readonly faults: readonly string[]
  /** The losses in the headers of the answers. */
  readonly lost: string
}

async function tryPair(pair: Pair): Promise<Outcome> {
  const { trial, upstream } = pair
  const folder = mkdtempSync(join(tmpdir(), 'weir-agent-'))
  const [home, work] = [join(folder, 'home'), join(folder, 'work')]
  for (const each of [home, work]) mkdirSync(each)
  const file = join(work, 'notes.txt')
  writeFileSync(file, task.before)
  const harness = await startDialects({ models: [model] })
  const tap = await startTap(harness.url)
  try {
    const key = await harness.key()
    const before = await harness.balance(key)
    const { script, played } = playerOf(file)
    harness.upstream.planModel(model.id, script)
    const [program, ...args] = await setUp(pair, { url: tap.url, key, model: modelOf(upstream, model.id) }, home)
    const env = { ...bareEnv(home), ...trial.env, ...(trial.code && { WEIR_KEY: key }) }
    const ended = await run({ program: program!, args, cwd: work, env })
    await harness.idle()
    if (options.verbose) print(ended.output)
    if (options.verbose) for (const line of [...tap.answered().map(describe), ...played.notes]) print(`    ${line}`)
    if (options.record) {
      const text = recordingOf(trial, tap.sent(), { [work]: '/home/ann/project', [home]: '/home/ann' })
      writeFileSync(join(options.record, nameOfRecording(trial)), text)
    }
    const after = await harness.balance(key)
    const [lost, recorded] = [reportedLosses(tap.answered()), recordedLosses(harness.records())]
    const { lastWords } = trial.code === undefined ? task : weather
    const faults = findFaults([
      [ended.code === 0, `exit code ${ended.code}: ${ended.output.slice(-2_000)}`],
      [
        ended.output.includes(lastWords.join('')),
        `the last words of the player are not shown: ${ended.output.slice(-2_000)}`,
      ],
      [played.ended, 'the player did not come to its last words'],
      [trial.code !== undefined || readFileSync(file, 'utf8') === task.after, 'the file was not changed'],
      [played.faults.length === 0, played.faults.join('; ')],
      [lost === recorded, `recorded the losses ${recorded}, reported ${lost}`],
      [tap.answered().every(({ status }) => status < 400), `refused: ${refused(tap.answered()).join(', ')}`],
      [Number(after.balance) < Number(before.balance), `the balance is still ${after.balance}`],
      [harness.openHolds() === 0 && Number(after.held) === 0, `${harness.openHolds()} open holds, ${after.held} held`],
    ])
    return { faults, lost }
  } finally {
    tap.stop()
    await harness.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An environment without the settings of the machine. Only the gateway can be reached. */
const bareEnv = (home: string): Record<string, string> => ({
  PATH: path,
  HOME: home,
  TERM: 'dumb',
  LANG: 'C.UTF-8',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1,localhost',
})

/** The losses in the headers of the answers must be those in the records, in any order. */
const asSet = (codes: readonly string[]): string => [...new Set(codes)].sort().join(' ')
const reportedLosses = (answered: readonly AnsweredRequest[]): string => asSet(answered.flatMap(({ lost }) => lost))
const recordedLosses = (records: readonly Record<string, unknown>[]): string =>
  asSet(records.flatMap(({ loss }) => (typeof loss === 'string' ? loss.split(',') : [])))

const describe = ({ request, status, lost }: AnsweredRequest): string => `${status} ${request} ${lost.join(' ')}`
const refused = (answered: readonly AnsweredRequest[]): readonly string[] =>
  answered.filter(({ status }) => status >= 400).map(describe)

const findFaults = (claims: readonly (readonly [holds: boolean, otherwise: string])[]): readonly string[] =>
  claims.filter(([holds]) => !holds).map(([, otherwise]) => otherwise)

const wanted = trials.filter(({ program }) => options.agent === undefined || program === options.agent)
const installed = options.installed ?? mkdtempSync(join(tmpdir(), 'weir-agents-'))
if (options.installed === undefined) await install(installed, wanted)
let failed = 0
let lossy = 0
for (const trial of wanted) {
  for (const upstream of dialects) {
    if (options.upstream === undefined ? upstream === programs[trial.program]!.speaks : upstream !== options.upstream)
      continue
    const sinceMs = performance.now()
    const { faults, lost } = await tryPair({ trial, upstream, installed })
    const tookS = ((performance.now() - sinceMs) / 1_000).toFixed(1)
    const pair = `${nameOfTrial(trial)} on ${upstream}`
    print(`${pair.padEnd(42)} ${tookS.padStart(5)} s  ${faults.length === 0 ? 'ok' : 'FAILED'}`)
    for (const fault of faults) print(`  ${fault}`)
    if (lost !== '') print(`  lost and reported: ${lost}`)
    if (lost !== '') lossy++
    if (faults.length > 0) failed++
  }
}
if (options.installed === undefined) rmSync(installed, { recursive: true, force: true })
const isFullRun = options.agent === undefined && options.upstream === undefined
if (isFullRun && lossy === 0) print('no run reported a loss, but some translations must lose something')
process.exit(failed === 0 && (!isFullRun || lossy > 0) ? 0 : 1)
