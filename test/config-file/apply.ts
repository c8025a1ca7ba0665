// The commands weir apply and weir export, as tests use them.

import type { Operator } from '../support/operator.ts'

interface Applied {
  readonly plan: readonly string[]
  readonly applied: boolean
  readonly created: readonly { readonly id: string; readonly name: string; readonly secret: string }[]
  readonly warnings: readonly string[]
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
  return answer as unknown as Applied
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
