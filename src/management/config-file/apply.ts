// Applies a plan: sends the requests of its changes one after the other. Each has its own entry in the audit log.

import { escapeControls } from '../../base/text/safe-text.ts'
import type { Plan, PlannedChange } from './plan.ts'
import type { Fields, ManagementClient } from './requests.ts'
import type { ApplyContext, EntryChanges } from './subject.ts'

/** The gateway refused a change. The changes before it were made. The message contains no secret. */
export class ConfigApplyError extends Error {
  readonly created: readonly ShownOnce[]

  constructor(message: string, created: readonly ShownOnce[]) {
    super(message)
    this.created = created
  }
}

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

/**
 * `show` gets each secret as soon as it exists, so that it is not lost if a later change fails or the process dies.
 * They are also in the result, or in the error.
 */
export async function applyPlan(
  { changes, warnings }: Plan,
  client: ManagementClient,
  show?: (shown: ShownOnce) => void,
): Promise<AppliedPlan> {
  const ids = new Map<string, string>()
  const created: ShownOnce[] = []
  const noted = [...warnings]
  const last: { readonly change: PlannedChange; step(): Promise<unknown> }[] = []
  const isDone = new Set<PlannedChange>()

  async function attempt(change: PlannedChange, step: () => Promise<unknown>): Promise<unknown> {
    try {
      return await step()
    } catch (fault) {
      const progress = `${isDone.size} of ${changes.length} changes were made. Correct this and apply the file again.`
      const problem = `${change.place}: ${titleOf(change)}: ${(fault as Error).message}`
      throw new ConfigApplyError(`${problem}\n${progress}`, created)
    }
  }
  const contextOf = (change: PlannedChange): ApplyContext => ({
    client,
    idOf: token => (typeof token === 'string' ? (ids.get(token) ?? token) : token),
    created: (token, id) => void ids.set(token, id),
    atEnd: step => void last.push({ change, step }),
    async showSecret(name, id, secret) {
      const shown = { id: String(id), name, secret: String(secret) }
      created.push(shown)
      await show?.(shown)
    },
  })

  for (const change of changes) {
    const answer = await attempt(change, () => change.run(contextOf(change)))
    isDone.add(change)
    const warnings = (answer as Fields | undefined)?.warnings as readonly string[] | undefined
    noted.push(...(warnings ?? []).map(text => `${titleOf(change)}: ${text}`))
  }
  for (const { change } of last) isDone.delete(change)
  for (const { change, step } of last) {
    await attempt(change, step)
    isDone.add(change)
  }
  return { warnings: noted, created }
}

export const shownOnceText = ({ name, secret }: ShownOnce): string =>
  `Created: ${escapeControls(name)}. Its secret is shown once: ${secret}`

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
