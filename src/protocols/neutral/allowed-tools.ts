// Which tools a request declares, for upstreams that have no lists of allowed tools.

import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { ToolChoice } from './conversation.ts'

/**
 * The names of the only functions to declare. Undefined: all of them. If the request forces one tool, the others stay:
 * the history may have calls of them, and the same tools in each turn keep the prompt cached.
 */
export function findOnlyNames(choice: ToolChoice | undefined, traits: ModelTraits): ReadonlySet<string> | undefined {
  if (choice?.names === undefined) return undefined
  const isForced = choice.mode === 'required' && choice.names.length === 1 && traits.forcedTool !== false
  return isForced ? undefined : new Set(choice.names)
}
