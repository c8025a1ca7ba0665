// The commands weir apply and weir export, as tests use them.

import type { Operator } from '../support/operator.ts'

interface Applied {
  readonly plan: readonly string[]
  readonly applied: boolean
  readonly created: readonly { readonly id: string; readonly name: string; readonly secret: string }[]
  readonly warnings: readonly string[]
}

interface Change {
  readonly action: 'create' | 'change' | 'remove'
  readonly kind: string
  readonly name: string
  readonly fields: Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The change in the form in which it is printed. */
function linesOf({ action, kind, name, fields }: Change): readonly string[] {
  const sign = { create: '+', change: '~', remove: '-' }[action]
  const values = Object.entries(fields).map(([field, { before, after }]) =>
    action === 'create' ? `    ${field}: ${text(after)}` : `    ${field}: ${text(before)} → ${text(after)}`,
  )
  return [`${sign} ${kind} ${name}`, ...values]
}

interface ApplyOptions {
  readonly dryRun?: boolean
  readonly prune?: boolean
  readonly name?: string
}

/** Applies the text of a file. Rejects with all problems of the file. */
export async function apply(
  { weir }: Operator,
  content: string,
  { dryRun = false, prune = false, name = 'weir.yaml' }: ApplyOptions = {},
): Promise<Applied> {
  const answer = await weir('apply', { file: name, name, content, 'dry-run': dryRun, prune })
  const { changes, ...others } = answer as unknown as Omit<Applied, 'plan'> & { readonly changes: readonly Change[] }
  return { ...others, plan: changes.flatMap(linesOf) }
}

/** The lines with which a file is refused. */
export async function problemsOf(
  operator: Operator,
  content: string,
  options?: ApplyOptions,
): Promise<readonly string[]> {
  try {
    await apply(operator, content, options)
  } catch (fault) {
    return (fault as Error).message.split('\n')
  }
  throw new Error('The file was applied.')
}

export async function exported({ weir }: Operator): Promise<{ file: string; warnings: readonly string[] }> {
  return (await weir('export')) as unknown as { file: string; warnings: readonly string[] }
}
