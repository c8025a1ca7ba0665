// Commands for configuration as code: apply a file, and export the configuration as a file.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ShownOnce } from '../../management/config-file/apply.ts'
import type { CommandFields } from '../connect.ts'
import { splitList, text } from '../input.ts'
import { PartialFailure, Problem, UsageProblem } from '../problem.ts'
import { warnIfPublic } from '../public-output.ts'
import { isRemote } from '../remote.ts'
import type { Send } from '../send.ts'
import type { CliCommand, SayLines } from './command.ts'
import { defineCommand } from './command.ts'

const STDIN = '-'

export const configFileRows: Readonly<Record<string, CliCommand>> = {
  'apply': defineCommand({
    usage: 'apply -f weir.yaml [--dry-run] [--prune]',
    description:
      'make the gateway have what a configuration file describes, after printing what changes; -f - reads standard ' +
      'input; --dry-run only prints; --prune also removes what the lists of the file do not have (keys are revoked)',
    options: ['file'],
    flags: ['dry-run', 'prune'],
    shorts: { file: 'f' },
    prepare: readFile,
    ask: apply,
    print: applyLines,
  }),
  'export': defineCommand({
    usage: 'export [--only channels,tiers]',
    description:
      'print the configuration as a file for weir apply; without secrets and without the texts of keys; --only ' +
      'prints some of its lists',
    options: ['only'],
    async ask({ only }, send) {
      const { exportConfig, exportParts } = await import('../../management/config-file/export.ts')
      const wanted = only === undefined ? exportParts : splitList(only)
      const unknown = wanted.find(part => !exportParts.includes(part))
      if (unknown !== undefined) throw new UsageProblem(`Unknown list "${unknown}". Lists: ${exportParts.join(', ')}.`)
      const { text: file, notes } = await exportConfig(send, wanted)
      return { file, warnings: notes }
    },
    print: ({ file }) => text(file).trimEnd().split('\n'),
  }),
}

async function readFile(input: CommandFields): Promise<CommandFields> {
  if (input.file === undefined) throw new UsageProblem('The file is missing. Usage: weir apply -f weir.yaml')
  if (input.file === STDIN) return { ...input, name: 'standard input', content: await Bun.stdin.text() }
  try {
    return { ...input, name: input.file, content: readFileSync(text(input.file), 'utf8') }
  } catch (fault) {
    throw new Problem(`The file ${text(input.file)} cannot be read: ${(fault as Error).message}.`)
  }
}

async function apply(input: CommandFields, send: Send, say?: SayLines): Promise<CommandFields> {
  const { readConfigFile } = await import('../../management/config-file/read-file.ts')
  const { buildPlan } = await import('../../management/config-file/plan.ts')
  const { applyPlan, ConfigApplyError, planFields, planLines, shownOnceText } = await import(
    '../../management/config-file/apply.ts'
  )
  const plan = await buildPlan({
    client: send,
    file: readConfigFile(text(input.content), text(input.name)),
    prune: input.prune === true,
    secrets: { env: process.env, folder: input.file === STDIN ? process.cwd() : dirname(resolve(text(input.file))) },
    isRemote: isRemote(),
    nowMs: Date.now,
  })
  const isDryRun = input['dry-run'] === true
  say?.(planLines(plan))
  const show = say && ((shown: ShownOnce) => say([shownOnceText(shown)]))
  const changes = planFields(plan)
  if (isDryRun) return { changes, applied: false, created: [], warnings: plan.warnings }
  try {
    const { warnings, created } = await applyPlan(plan, send, show)
    if (created.length > 0) warnIfPublic()
    return { changes, applied: true, created, warnings }
  } catch (fault) {
    if (!(fault instanceof ConfigApplyError)) throw fault
    const { message, created } = fault
    if (created.length > 0) warnIfPublic()
    // Secrets go where answers go: programs keep that, while errors often end in a log.
    throw new PartialFailure(message, { changes, applied: false, created, error: message })
  }
}

/** New keys and secrets of webhooks have been printed as they were created. */
function applyLines({ changes, applied }: CommandFields): readonly string[] {
  const count = (changes as readonly unknown[]).length
  if (count === 0) return ['No changes.']
  return ['', `${count} ${count === 1 ? 'change' : 'changes'}${applied === true ? ' made' : ', not made (--dry-run)'}.`]
}
