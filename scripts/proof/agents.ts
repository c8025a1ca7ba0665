// Sets coding agents to work through the gateway on upstreams of other dialects than their own. Each agent comes from
// npm, edits a file and runs commands; a player stands in for the model. Ends non-zero when a run fails.
//
//   bin/weir-bun scripts/proof/agents.ts [--agent codex] [--upstream gemini] [--installed folder] [--verbose]
//
// Not part of the tests, because it needs npm's registry and a few hundred megabytes.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Dialect } from '../../test/dialects/upstreams.ts'
import { dialects, modelOf, startDialects } from '../../test/dialects/upstreams.ts'
import { playerOf, task } from './agents/player.ts'
import type { Agent } from './agents/rows.ts'
import { agents, furnish } from './agents/rows.ts'
import type { Heard } from './agents/tap.ts'
import { startTap } from './agents/tap.ts'

const { values: options } = parseArgs({
  options: {
    agent: { type: 'string' },
    upstream: { type: 'string' },
    installed: { type: 'string' },
    verbose: { type: 'boolean' },
  },
})
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const runMs = 180_000

interface Ended {
  readonly code: number | null
  readonly output: string
}

interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Record<string, string>
}

function run({ program, args, cwd, env }: Command): Promise<Ended> {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: runMs })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', bytes => void (output += String(bytes)))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => resolve({ code, output }))
  })
}

const path = process.env.PATH ?? '/usr/bin:/bin'

async function install(folder: string, wanted: readonly Agent[]): Promise<void> {
  const specs = wanted.map(agent => `${agent.package}@${agent.version}`)
  say(`npm install ${specs.join(' ')}`)
  const args = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', ...specs]
  const env = { PATH: path, HOME: process.env.HOME ?? folder }
  const { code, output } = await run({ program: 'npm', args, cwd: folder, env })
  if (code !== 0) throw new Error(`npm install failed:\n${output}`)
}

/** A model large enough for what agents say of themselves before the first word of the user. */
const model = {
  id: 'player',
  contextTokens: 400_000,
  outputTokensMax: 64_000,
  price: { input: '1', output: '2', cacheRead: '0.5' },
}

interface Pair {
  readonly agent: Agent
  readonly upstream: Dialect
  readonly installed: string
}

interface Outcome {
  readonly faults: readonly string[]
  /** What the agent was told that it lost. */
  readonly lost: string
}

async function tryPair({ agent, upstream, installed }: Pair): Promise<Outcome> {
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
    const setting = { url: tap.url, key, model: modelOf(upstream, model.id), prompt: task.prompt, home }
    furnish(agent, setting)
    const [program, ...rest] = agent.program.map(part => join(installed, 'node_modules', part))
    const env = { ...bareEnv(home), ...agent.env?.(setting) }
    const ended = await run({ program: program!, args: [...rest, ...agent.args(setting)], cwd: work, env })
    await harness.idle()
    if (options.verbose) say(ended.output)
    if (options.verbose) for (const line of [...tap.heard().map(tellHeard), ...played.notes]) say(`    ${line}`)
    const after = await harness.balance(key)
    const [lost, recorded] = [sayLosses(tap.heard()), toldIn(harness.records())]
    const faults = findFaults([
      [ended.code === 0, `exit code ${ended.code}: ${ended.output.slice(-2_000)}`],
      [ended.output.includes(task.lastWords.join('')), `its last words are not shown: ${ended.output.slice(-2_000)}`],
      [played.ended, 'the player did not come to its last words'],
      [readFileSync(file, 'utf8') === task.after, 'the file was not changed'],
      [played.faults.length === 0, played.faults.join('; ')],
      [lost === recorded, `lost ${recorded} and said ${lost}`],
      [tap.heard().every(heard => heard.status < 400), `refused: ${refused(tap.heard()).join(', ')}`],
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

/** Nothing of the machine's own settings, and no way out but to the gateway. */
const bareEnv = (home: string): Record<string, string> => ({
  PATH: path,
  HOME: home,
  TERM: 'dumb',
  LANG: 'C.UTF-8',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1,localhost',
})

/** What the agent was told is what is on record, and each is a set. */
const asSet = (codes: readonly string[]): string => [...new Set(codes)].sort().join(' ')
const sayLosses = (heard: readonly Heard[]): string => asSet(heard.flatMap(({ lost }) => lost))
const toldIn = (records: readonly Record<string, unknown>[]): string =>
  asSet(records.flatMap(({ loss }) => (typeof loss === 'string' ? loss.split(',') : [])))

const tellHeard = ({ asked, status, lost }: Heard): string => `${status} ${asked} ${lost.join(' ')}`
const refused = (heard: readonly Heard[]): readonly string[] => heard.filter(each => each.status >= 400).map(tellHeard)

const findFaults = (claims: readonly (readonly [holds: boolean, otherwise: string])[]): readonly string[] =>
  claims.filter(([holds]) => !holds).map(([, otherwise]) => otherwise)

const wanted = agents.filter(agent => options.agent === undefined || agent.name === options.agent)
const installed = options.installed ?? mkdtempSync(join(tmpdir(), 'weir-agents-'))
if (options.installed === undefined) await install(installed, wanted)
let failed = 0
let lossy = 0
for (const agent of wanted) {
  for (const upstream of dialects) {
    if (options.upstream === undefined ? upstream === agent.speaks : upstream !== options.upstream) continue
    const sinceMs = performance.now()
    const { faults, lost } = await tryPair({ agent, upstream, installed })
    const tookS = ((performance.now() - sinceMs) / 1_000).toFixed(1)
    const pair = `${agent.name} ${agent.version} on ${upstream}`
    say(`${pair.padEnd(42)} ${tookS.padStart(5)} s  ${faults.length === 0 ? 'ok' : 'FAILED'}`)
    for (const fault of faults) say(`  ${fault}`)
    if (lost !== '') say(`  lost, and said so: ${lost}`)
    if (lost !== '') lossy++
    if (faults.length > 0) failed++
  }
}
if (options.installed === undefined) rmSync(installed, { recursive: true, force: true })
const isWhole = options.agent === undefined && options.upstream === undefined
if (isWhole && lossy === 0) say('no run said that anything was lost, which cannot be')
process.exit(failed === 0 && (!isWhole || lossy > 0) ? 0 : 1)
