// Tests how the arguments of commands are read: misspelt options and values get a suggestion, and nothing is sent.

import { expect, test } from 'bun:test'
import { UsageProblem } from '../problem.ts'
import { optionsOf } from './command.ts'
import { cliCommands } from './commands.ts'

/** The message with which the command refuses its arguments. */
async function refusalOf(command: string, args: string): Promise<string> {
  const words = args.split(' ').filter(word => word !== '')
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
