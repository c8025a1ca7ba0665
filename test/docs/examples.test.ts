// Runs the shell blocks of the documentation, page by page, on a gateway. Blocks that are marked ```sh not run``` are
// skipped, and so are pages whose examples another test runs.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

let harness: Harness
let variables: Record<string, string>

beforeAll(async () => {
  harness = await startHarness()
  const created = await harness.weir('keys create', { tier: 'pro', credit: '5' })
  const { setupToken } = await harness.weir('setup', { token: true })
  variables = {
    WEIR: harness.url,
    WEIR_DATA: harness.folder,
    HOME: harness.folder,
    COMMAND: join(ROOT, 'bin', 'weir'),
    KEY: String(created.key),
    WEIR_KEY: String(created.key),
    ACCOUNT: String(created.account),
    SETUP_TOKEN: String(setupToken),
  }
})
afterAll(() => harness.stop())

const ROOT = join(import.meta.dir, '..', '..')
const testedElsewhere = [
  ...['guides/limits.md', 'guides/model-names.md', 'guides/channel-settings.md', 'guides/restrict-keys.md'],
  ...['start/solo.md', 'start/company.md', 'start/reseller.md'],
]

interface Block {
  readonly page: string
  readonly line: number
  readonly info: string
  readonly text: string
}

function blocksOf(page: string, path: string): readonly Block[] {
  const text = readFileSync(path, 'utf8')
  return [...text.matchAll(/^```([^\n]*)\n([^]*?)^```/gm)].map(found => ({
    page,
    line: text.slice(0, found.index).split('\n').length,
    info: found[1]!,
    text: found[2]!,
  }))
}

const hasCommands = ({ text }: Block): boolean => /^(\w+=\$\()?(curl|weir|bin\/weir) /m.test(text)

const pages = readdirSync(join(ROOT, 'docs'), { encoding: 'utf8', recursive: true }).filter(
  name => name.endsWith('.md') && !testedElsewhere.includes(name),
)
const commandBlocks = [['README.md', 'README.md'], ...pages.map(name => [name, join('docs', name)])]
  .flatMap(([page, path]) => blocksOf(page!, join(ROOT, path!)))
  .filter(hasCommands)

test('every block with commands is marked as sh or as sh not run', () => {
  expect(commandBlocks.filter(({ info }) => info !== 'sh' && info !== 'sh not run')).toEqual([])
})

/** The blocks of a page as one script, with the address, the key and the path of the command replaced. */
function scriptOf(blocks: readonly Block[]): string {
  const curl = 'curl() { command curl -sS --fail-with-body --max-time 100 "$@"; }'
  const head = ['set -e', curl, 'weir() { "$COMMAND" "$@"; }']
  const body = blocks.map(({ line, text }) => `echo "line ${line}" >&2\n${text}`)
  const text = [...head, ...body].join('\n').replaceAll('http://127.0.0.1:8080', '$WEIR')
  return text.replaceAll('bin/weir ', 'weir ').replaceAll(/'([^']*)wk-…'/g, '"$1$KEY"')
}

const runnable = Map.groupBy(
  commandBlocks.filter(({ info }) => info === 'sh'),
  ({ page }) => page,
)

test.each([...runnable])('the commands of %s succeed', async (_page, blocks) => {
  const { token } = await harness.weir('token') // a token works for ten minutes
  const child = Bun.spawn(['sh', '-c', scriptOf(blocks)], {
    cwd: harness.folder,
    env: { PATH: process.env.PATH, ...variables, TOKEN: String(token) },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  const last = stderr.trim().split('\n').slice(-3).join('\n')
  expect([code, code === 0 ? '' : `${last}\n${stdout.slice(-500)}`]).toEqual([0, ''])
})
