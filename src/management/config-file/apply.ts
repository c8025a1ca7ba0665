// Applies a plan: sends the requests of its changes one after the other. Each has its own entry in the audit log.

import { escapeControls } from '../../base/text/safe-text.ts'
import type { Plan, PlannedChange } from './plan.ts'
import type { Fields, ManagementClient } from './requests.ts'
import type { EntryChanges } from './subject.ts'

/** The gateway refused a change. The changes before it were made. */
export class ConfigApplyError extends Error {}

export interface AppliedPlan {
  readonly warnings: readonly string[]
  /** The texts of new keys and the secrets of new webhooks, which are never shown again. */
  readonly created: readonly ShownOnce[]
}

export interface ShownOnce {
  readonly id: string
  /** Such as `key acme/ci`. */
  readonly name: string
  readonly secret: string
}

export async function applyPlan({ changes, warnings }: Plan, client: ManagementClient): Promise<AppliedPlan> {
  const ids = new Map<string, string>()
  const shown: ShownOnce[] = []
  const noted = [...warnings]
  const context = {
    client,
    idOf: (token: unknown) => (typeof token === 'string' ? (ids.get(token) ?? token) : token),
    created: (token: string, id: string) => void ids.set(token, id),
    showSecret: (name: string, id: unknown, secret: unknown) =>
      void shown.push({ id: String(id), name, secret: String(secret) }),
  }
  for (const [done, change] of changes.entries()) {
    try {
      const answer = await change.run(context)
      const said = (answer as Fields | undefined)?.warnings as readonly string[] | undefined
      noted.push(...(said ?? []).map(text => `${titleOf(change)}: ${text}`))
    } catch (fault) {
      // What was created before would be lost if it were not shown now.
      const made = shown.map(({ name, secret }) => `\nCreated: ${name}. Its secret is shown once: ${secret}`)
      const progress = `${done} of ${changes.length} changes were made. Correct this and apply the file again.`
      const problem = `${change.place}: ${titleOf(change)}: ${(fault as Error).message}`
      throw new ConfigApplyError(`${problem}\n${progress}${made.join('')}`)
    }
  }
  return { warnings: noted, created: shown }
}

const titleOf = ({ noun, label }: PlannedChange): string => (label === '' ? noun : `${noun} ${escapeControls(label)}`)

const signs = { create: '+', change: '~', remove: '-' } as const

/** The plan as people read it: one line for each thing, and for changes one line for each field. */
export function planLines({ changes }: Plan): readonly string[] {
  return changes.flatMap(change => [
    `${signs[change.action]} ${titleOf(change)}${change.removal === undefined ? '' : ` (${change.removal})`}`,
    ...fieldLines(change),
  ])
}

const fieldLines = ({ action, fields }: PlannedChange): readonly string[] =>
  Object.entries(fields).map(([name, [before, after]]) =>
    action === 'create'
      ? `    ${name}: ${valueText(after)}`
      : `    ${name}: ${valueText(before)} → ${valueText(after)}`,
  )

const VALUE_CHARACTERS_MAX = 200

function valueText(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none')
  const shown = text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text
  return escapeControls(shown)
}

/** The plan for programs. */
export const planFields = ({ changes }: Plan): readonly Fields[] =>
  changes.map(({ action, noun, label, fields, place }) => ({
    action,
    kind: noun,
    name: label,
    place,
    fields: pairs(fields),
  }))

const pairs = (fields: EntryChanges): Fields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, [before, after]]) => [name, { before: before ?? null, after: after ?? null }]),
  )
