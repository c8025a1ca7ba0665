// The scripts of `weir completion`, the one for bash in a real bash: it completes commands, options and fixed values.

import { afterAll, describe, expect, test } from 'bun:test'
import { cliCommands } from '../../src/cli/commands/commands.ts'
import { completionRows, completionScript, shells } from '../../src/cli/completion.ts'
import { cleanUp, freshFolder, weir } from '../front/weir-process.ts'

afterAll(cleanUp)

/** Reads lines such as `weir keys li`, completes the last word of each, and prints its completions on one line. */
const COMPLETE_LINES = `
while IFS= read -r line; do
  COMP_WORDS=($line)
  case "$line" in *' ') COMP_WORDS+=('') ;; esac
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _weir
  echo "\${COMPREPLY[*]}"
done`

async function complete(lines: readonly string[]): Promise<readonly string[]> {
  const script = `set -u\n${completionScript('bash', cliCommands)}\n${COMPLETE_LINES}`
  const stdin = new Blob([lines.map(line => `${line}\n`).join('')])
  const bash = Bun.spawn(['bash', '--norc', '-c', script], { stdin, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([bash.stdout.text(), bash.stderr.text(), bash.exited])
  expect([code, stderr]).toEqual([0, ''])
  return stdout.split('\n').slice(0, -1)
}

const firstWords = [...new Set(Object.keys(cliCommands).map(name => name.split(' ')[0]!))]
const listOptions = '--account --name --state --tier --ends --limit --after --json --help'

const cases: readonly (readonly [typed: string, completions: string])[] = [
  ['weir ', [...firstWords, 'help'].join(' ')],
  ['weir ke', 'keys'],
  ['weir help ke', 'keys'],
  ['weir keys ', 'create list show set rotate revoke'],
  ['weir keys l', 'list'],
  ['weir keys list ', listOptions],
  ['weir keys list --st', '--state'],
  ['weir keys list --state ', 'active disabled expired revoked'],
  ['weir keys list --state a', 'active'],
  ['weir keys list --state active --li', '--limit'],
  ['weir keys list --name ', ''],
  ['weir keys list --json --state r', 'revoked'],
  ['weir records exp', 'export'],
  ['weir records --st', '--status --streamed'],
  ['weir records --streamed o', 'on off'],
  ['weir records export --format ', 'csv ndjson'],
  ['weir budgets set key_1 ', 'total day month'],
  ['weir budgets set key_1 --j', '--json'],
  ['weir budgets set --json key_1 m', 'month'],
  ['weir keys show ', ''],
  ['weir rotate ', 'pepper jwt encryption'],
  ['weir rotate jwt --', '--status --finish --force --json --help'],
  ['weir completion ', 'bash zsh fish'],
  ['weir serve --j', ''],
  ['weir nothing ', ''],
  ['weir keys nothing ', ''],
]

describe('in bash,', () => {
  test('a line is completed', async () => {
    const completed = await complete(cases.map(([typed]) => typed))
    expect(cases.map(([typed], at) => [typed, completed[at]!])).toEqual(cases.map(([...pair]) => pair))
  })

  test('every command, every option and every fixed value of the table is offered', async () => {
    const expected = Object.entries(cliCommands).flatMap(([name, { options = [], flags = [], values = {} }]) => [
      [`weir ${name.slice(0, -1)}`, name.split(' ').at(-1)!] as const,
      ...[...options, ...flags].map(option => [`weir ${name} --${option}`, `--${option}`] as const),
      ...options.flatMap(option =>
        (values[option] ?? []).map(value => [`weir ${name} --${option} ${value}`, value] as const),
      ),
    ])
    const completed = await complete(expected.map(([typed]) => typed))
    const missing = expected.filter(([, word], at) => !completed[at]!.split(' ').includes(word))
    expect(expected.length).toBeGreaterThan(300)
    expect(missing).toEqual([])
  })
})

test('no word of the scripts needs quotes in a shell', () => {
  const words = [...completionRows(cliCommands)].flatMap(([name, listed]) => [...name.split(' '), ...listed])
  expect(words.filter(word => !/^([A-Za-z0-9._-]*|<\d+>)$/.test(word))).toEqual([])
})

describe.each(shells)('for %s', shell => {
  test('weir completion prints the script', async () => {
    const printed = await weir(freshFolder(), `completion ${shell}`)
    expect(printed).toEqual({ code: 0, stdout: `${completionScript(shell, cliCommands)}\n`, stderr: '' })
  })

  if (Bun.which(shell) === null) return // zsh and fish need not be installed
  test('the script has no syntax error', async () => {
    const stdin = new Blob([completionScript(shell, cliCommands)])
    const check = Bun.spawn([shell, '-n'], { stdin, stdout: 'pipe', stderr: 'pipe' })
    expect([await check.stderr.text(), await check.exited]).toEqual(['', 0])
  })
})

test('another shell is refused with the list of shells', async () => {
  const { code, stderr } = await weir(freshFolder(), 'completion tcsh')
  expect([code, stderr]).toEqual([2, 'weir: <shell> must be one of: bash, zsh, fish.\n'])
})
