// Tests how the arguments of commands are read: misspelt options and values get a suggestion, and nothing is sent.

import { expect, test } from 'bun:test'
import { UsageProblem } from '../problem.ts'
import { optionsOf } from './command.ts'
import { cliCommands } from './commands.ts'

/** The message with which the command refuses its arguments. */
async function refusalOf(command: string, args: string | readonly string[]): Promise<string> {
  const words = typeof args === 'string' ? args.split(' ').filter(word => word !== '') : args
  const fault = await cliCommands[command]!.run(words).catch((thrown: unknown) => thrown)
  expect(fault).toBeInstanceOf(UsageProblem)
  return (fault as Error).message
}

const misspelt: readonly (readonly [command: string, args: string, message: string])[] = [
  ['keys list', '--stat active', 'Unknown option --stat. Did you mean --state?'],
  ['restore', 'folder --prgress', 'Unknown option --prgress. Did you mean --progress?'],
  ['login', '--ur https://weir.example.com', 'Did you mean --url?'],
  ['check', '--jsn', 'Did you mean --json?'],
  ['serve', '--json', 'Unknown option --json. Usage: weir serve'],
  ['serve', 'now', 'Usage: weir serve'],
  ['fake-upstream', '--falt F14', 'Did you mean --fault?'],
  ['keys list', '--state actve', '--state must be one of: active, disabled, expired, revoked. Did you mean active?'],
  ['keys set', 'key_00000000001 --endpoints chat,mesages', 'Did you mean messages?'],
  ['budgets set', 'key_00000000001 dya 5', '<span> must be one of: total, day, month. Did you mean day?'],
  ['routes set', 'small a/b --policy balancd', 'Did you mean balanced?'],
  ['api', 'get /api/web/me', 'Did you mean GET?'],
  ['records', '--outcome complete', 'Did you mean completed?'],
]

test.each(misspelt)('weir %s %s', async (command, args, message) => {
  expect(await refusalOf(command, args)).toContain(message)
})

const unusable: readonly (readonly [command: string, args: readonly string[], message: string])[] = [
  ['keys create', ['-credit', '5'], 'Unknown option -credit. Did you mean --credit? Usage: weir keys create'],
  ['keys create', ['-c', '5'], 'Unknown option. Usage: weir keys create'],
  ['keys create', ['--tier'], '--tier needs a value. Usage: weir keys create'],
  [
    'keys create',
    ['--tier', '--qpm', '5'],
    '--tier needs a value. A value that begins with a dash is written as --tier=',
  ],
  ['keys create', ['--json=true'], '--json takes no value. Usage: weir keys create'],
  ['apply', ['-f'], '--file needs a value. Usage: weir apply'],
  ['keys create', ['--deny', 'a/*', '--deny', 'b/*'], '--deny is given more than once.'],
  ['apply', ['-f', 'a.yaml', '--file', 'b.yaml'], '--file is given more than once.'],
  ['rotate', ['jwt', '--status', '--finish'], 'Use either --status or --finish, not both.'],
]

test.each(unusable)('weir %s %p', async (command, args, message) => {
  expect(await refusalOf(command, args)).toContain(message)
})

test('an empty value, as of a variable that a script has not set, is refused and lifts no restriction', async () => {
  for (const empty of ['', ' ', ',', ' , ']) {
    expect(await refusalOf('keys create', ['--allow', empty])).toContain('The value of --allow is empty.')
    expect(await refusalOf('keys set', ['key_00000000001', `--endpoints=${empty}`])).toContain('--endpoints is empty.')
  }
  expect(await refusalOf('balance', [''])).toBe('<account> is empty. Usage: weir balance <account or key>')
  expect(await refusalOf('routes set', ['fast', 'demo/echo', ' '])).toContain('<members> is empty.')
})

test('a short word gets no suggestion with the opposite meaning, and what was typed is not repeated', async () => {
  expect(await refusalOf('keys set', 'key_00000000001 --bodies no')).toBe('--bodies must be one of: on, off.')
  expect(await refusalOf('keys list', '--state sk-secret')).not.toContain('sk-secret')
  expect(await refusalOf('keys list', '--sk-secret/value')).not.toContain('secret')
})

test('fixed words belong to an option or an argument of their command', () => {
  for (const row of Object.values(cliCommands)) {
    const { texts } = optionsOf(row)
    const names = [...texts, ...(row.positionals ?? []).map(name => name.replace(/[?…]$/, ''))]
    expect(Object.keys(row.values ?? {}).filter(name => !names.includes(name))).toEqual([])
  }
})

test('every option in the usage of a command is read', () => {
  for (const [name, row] of Object.entries(cliCommands)) {
    const { texts, flags } = optionsOf(row)
    const shown = [...row.usage.matchAll(/--([a-z0-9-]+)/g)].map(([, option]) => option!)
    expect([name, shown.filter(option => ![...texts, ...flags].includes(option))]).toEqual([name, []])
  }
})
