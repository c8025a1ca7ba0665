// What the documentation says to type is typed, page by page, into a gateway that runs. A block that is marked
// ```sh not run``` is for other places than this one; pages whose examples another test tries are left to it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

let harness: Harness
let names: Record<string, string>

beforeAll(async () => {
  harness = await startHarness()
  const made = await harness.weir('keys create', { tier: 'pro', credit: '5' })
  const { token } = await harness.weir('token')
  const { setupToken } = await harness.weir('setup', { token: true })
  names = {
    WEIR: harness.url,
    WEIR_DATA: harness.folder,
    COMMAND: join(ROOT, 'bin', 'weir'),
    KEY: String(made.key),
    WEIR_KEY: String(made.key),
    ACCOUNT: String(made.account),
    TOKEN: String(token),
    SETUP_TOKEN: String(setupToken),
  }
})
afterAll(() => harness.stop())

const ROOT = join(import.meta.dir, '..', '..')
const elsewhere = [
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

const isTyped = ({ text }: Block): boolean => /^(\w+=\$\()?(curl|weir|bin\/weir) /m.test(text)

const pages = readdirSync(join(ROOT, 'docs'), { encoding: 'utf8', recursive: true }).filter(
  name => name.endsWith('.md') && !elsewhere.includes(name),
)
const typed = [['README.md', 'README.md'], ...pages.map(name => [name, join('docs', name)])]
  .flatMap(([page, path]) => blocksOf(page!, join(ROOT, path!)))
  .filter(isTyped)

test('every block that can be typed says that it is of the shell, and whether it runs', () => {
  expect(typed.filter(({ info }) => info !== 'sh' && info !== 'sh not run')).toEqual([])
})

/** As they are in the documents, but for what stands for something: the address, a key, and the command itself. */
function scriptOf(blocks: readonly Block[]): string {
  const curl = 'curl() { command curl -sS --fail-with-body --max-time 20 "$@"; }'
  const head = ['set -e', curl, 'weir() { "$COMMAND" "$@"; }']
  const body = blocks.map(({ line, text }) => `echo "line ${line}" >&2\n${text}`)
  const text = [...head, ...body].join('\n').replaceAll('http://127.0.0.1:8080', '$WEIR')
  return text.replaceAll('bin/weir ', 'weir ').replaceAll(/'([^']*)wk-…'/g, '"$1$KEY"')
}

const runnable = Map.groupBy(
  typed.filter(({ info }) => info === 'sh'),
  ({ page }) => page,
)

test.each([...runnable])('%s', async (_page, blocks) => {
  const child = Bun.spawn(['sh', '-c', scriptOf(blocks)], {
    cwd: harness.folder,
    env: { PATH: process.env.PATH, ...names },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, said, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  const last = stderr.trim().split('\n').slice(-3).join('\n')
  expect([code, code === 0 ? '' : `${last}\n${said.slice(-500)}`]).toEqual([0, ''])
})
