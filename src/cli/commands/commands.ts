// The table of all weir commands.

import { completionScript, shells } from '../completion.ts'
import { accountRows } from './accounts.ts'
import { channelRows } from './channels.ts'
import type { CliCommand } from './command.ts'
import { defineOwnCommand, printLine } from './command.ts'
import { configFileRows } from './config-file.ts'
import { connectRows } from './connect.ts'
import { keyRows } from './keys.ts'
import { moneyRows } from './money.ts'
import { moveRows } from './move.ts'
import { peopleRows } from './people.ts'
import { bookRows } from './prices-and-ledger.ts'
import { providerRows } from './providers.ts'
import { recordRows } from './records.ts'
import { remoteRows } from './remote.ts'
import { ruleRows } from './rules.ts'
import { secretRows } from './secrets.ts'
import { systemRows } from './system.ts'
import { tokenRows } from './tokens.ts'
import { webhookRows } from './webhooks.ts'

export const cliCommands: Readonly<Record<string, CliCommand>> = {
  'serve': defineOwnCommand(
    {
      usage: 'serve [--processes <count>]',
      description: 'start the gateway; several processes use several cores and need a PostgreSQL database',
      options: ['processes'],
      hasJson: false,
    },
    async ({ processes }) => {
      const { readConfig } = await import('../../config.ts')
      const env = processes === undefined ? process.env : { ...process.env, WEIR_PROCESSES: String(processes) }
      const config = readConfig(env)
      if (config.processes === 1) return await (await import('../serve.ts')).serve(config, printLine)
      await (await import('../serve-processes.ts')).serveProcesses(config, printLine)
    },
  ),
  ...keyRows,
  ...accountRows,
  ...moneyRows,
  ...recordRows,
  ...bookRows,
  ...ruleRows,
  ...channelRows,
  ...configFileRows,
  ...providerRows,
  ...webhookRows,
  ...secretRows,
  ...moveRows,
  ...systemRows,
  ...peopleRows,
  ...tokenRows,
  ...remoteRows,
  ...connectRows,
  'completion': defineOwnCommand(
    {
      usage: 'completion <bash|zsh|fish>',
      description:
        'print a script that completes commands, options and values when you press Tab; for bash and zsh, put ' +
        'eval "$(weir completion bash)" into ~/.bashrc, or the same with zsh into ~/.zshrc after compinit; for fish, ' +
        'write the script to ~/.config/fish/completions/weir.fish',
      positionals: ['shell'],
      values: { shell: shells },
      hasJson: false,
    },
    ({ shell }) => printLine(completionScript(String(shell), cliCommands)),
  ),
  'fake-upstream': defineOwnCommand(
    {
      usage:
        'fake-upstream [--fault F14] [--every n] [--dialect name] [--scale 0.01] [--port n] [--host address] [--list]',
      description:
        'run a fake provider that produces faults, for tests; --list lists the faults; runs until it gets a signal',
      options: ['fault', 'every', 'dialect', 'scale', 'port', 'host'],
      flags: ['list'],
    },
    async input => (await import('../../../tools/fake-upstream/command.ts')).fakeUpstream(input, printLine),
  ),
}

/** The order of the commands in `weir help`, by their first word. */
export const commandGroups: readonly (readonly [title: string, words: readonly string[]])[] = [
  ['Running the gateway', ['serve', 'setup', 'migrate', 'check', 'doctor', 'version', 'completion']],
  ['People and service tokens', ['users', 'token', 'tokens']],
  ['Keys and accounts', ['keys', 'accounts']],
  ['Money', ['balance', 'top-up', 'topup', 'gift', 'adjust', 'refund', 'codes', 'budgets', 'statement', 'prices']],
  ['Calls', ['records', 'record', 'bodies']],
  ['Rules and channels', ['limits', 'routes', 'channels', 'providers']],
  ['Configuration as code', ['apply', 'export']],
  ['Notifications', ['webhooks']],
  ['Audit, backup and secrets', ['audit', 'backup', 'restore', 'migrate-to', 'rotate']],
  ['Programs that use the gateway', ['connect']],
  ['Remote gateway', ['login', 'api', 'logout']],
  ['Testing', ['fake-upstream']],
]
