// Leaves out tools that a request declares again. OpenAI accepts them; Anthropic, Google and others refuse the request.

import { isDeepStrictEqual } from 'node:util'
import type { Tool } from './conversation.ts'
import type { Losses } from './losses.ts'

/** The first of several tools with one name stays. The others are a loss only if they differ from it. */
export function dropRepeatedTools(tools: readonly Tool[], losses: Pick<Losses, 'add'>): readonly Tool[] {
  const firstTools = new Map<string, Tool>()
  return tools.filter(tool => {
    if (tool.kind === 'native') return true
    const key = 'name' in tool ? `named ${tool.name}` : tool.kind
    const first = firstTools.get(key)
    if (first === undefined) firstTools.set(key, tool)
    else if (!isDeepStrictEqual(first, tool)) losses.add('name' in tool ? 'tools.repeated' : 'web_search.repeated')
    return first === undefined
  })
}
