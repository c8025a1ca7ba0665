// A rolling upgrade: two gateways of an earlier commit on one PostgreSQL under load; `weir migrate` of the working
// tree; then one gateway after the other is replaced by one of the working tree. No call may fail, and the ledger must
// be right. For a while gateways of both versions serve. Exits with 1 at a violation of a rule of the crash tests.
//
//   bin/weir-bun scripts/proof/upgrade.ts [--from 135ee86f] [--seed n] [--callers 6] [--calls 100]
//
// The default is the first version with PostgreSQL. `--calls` are sent in each state.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ROOT } from '../../test/crash/gateway-child.ts'
import { startFleet } from '../../test/shared/fleet.ts'
import { Load } from '../../test/shared/load.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { exitWith, print } from './output.ts'

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: '135ee86f' },
    seed: { type: 'string' },
    callers: { type: 'string', default: '6' },
    calls: { type: 'string', default: '100' },
  },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const calls = Number(values.calls)

/** A folder with the sources of the commit and the packages of the working tree. */
function checkOut(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-upgrade-'))
  mkdirSync(folder, { recursive: true })
  const archive = Bun.spawnSync(['git', 'archive', commit], { cwd: ROOT, maxBuffer: 1024 ** 3 })
  const unpacked = Bun.spawnSync(['tar', 'x', '-C', folder], { stdin: archive.stdout })
  if (archive.exitCode !== 0 || unpacked.exitCode !== 0) throw new Error(`${commit} cannot be read: ${archive.stderr}`)
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

const old = checkOut(values.from)
const upstream = await startFakeUpstream({ keepRequests: 0 })
const env = { WEIR_DRAIN_DELAY_SECONDS: '2', WEIR_DRAIN_SECONDS: '30' }
const fleet = await startFleet({ count: 2, upstream: upstream.url, root: old, env })
const load = await Load.start({ fleet, upstream, seed, callers: Number(values.callers), sure: true })
const violations: string[] = []
let findings: readonly unknown[] = []

async function look(state: string): Promise<void> {
  const verdict = await load.look()
  violations.push(...verdict.violations.map(text => `${state}: ${text}`))
  print(`${state}: ${verdict.calls} calls so far, ${JSON.stringify(verdict.outcomes)}`)
  load.balancer.open()
}

try {
  print(`from ${values.from}, seed ${seed}`)
  load.balancer.open()
  await load.untilSent(calls)
  await look('both gateways are old')
  const migrating = load.untilSent(calls)
  const { socket } = fleet.postgres
  const url = `postgres://weir@localhost/${fleet.database}?host=${socket.slice(0, socket.lastIndexOf('/'))}`
  const migrate = Bun.spawn([join(ROOT, 'bin', 'weir'), 'migrate'], {
    env: { PATH: process.env.PATH, WEIR_DATABASE_URL: url },
    stdout: 'pipe',
  })
  print((await new Response(migrate.stdout).text()).trim())
  if ((await migrate.exited) !== 0) violations.push('weir migrate has failed')
  await migrating
  await look('after the migration')
  for (const [at, member] of fleet.members.entries()) {
    member.child.signal('SIGTERM')
    const status = await member.child.ended
    if (status !== 0) violations.push(`gateway ${at + 1} has ended with status ${status}`)
    member.root = ROOT
    await member.start()
    await load.untilSent(calls)
    await look(`gateway ${at + 1} is new`)
  }
  findings = (await fleet.members[0]!.weir('audit')).findings as unknown[]
} finally {
  await load.close()
  await fleet.close()
  await upstream.stop()
  rmSync(old, { recursive: true, force: true })
}
exitWith({ violations, findings })
