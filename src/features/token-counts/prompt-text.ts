// Writes what a model reads of a conversation as one text, for counting. Providers build their prompts in ways that
// they do not publish; what that adds is learned from the usage that they report.

import type { Conversation, ConversationPart, MediaPart, Tool } from '../../protocols/neutral/conversation.ts'

export interface Prompt {
  readonly text: string
  /** The tokens around its turns and tools. */
  readonly overhead: number
  /** The number of images, audio files, videos and documents. */
  readonly media: number
}

/** The markers of role and end, and the name of the speaker. */
const TURN_TOKENS = 4
const TOOL_TOKENS = 8

export function promptOf({ messages, tools, format }: Conversation): Prompt {
  const texts: string[] = []
  let media = 0
  const take = (part: ConversationPart): void => {
    if ('source' in part && part.source.at !== 'text') media++
    else texts.push(...textsOf(part, take))
  }
  for (const { parts } of messages) parts.forEach(take)
  texts.push(...tools.flatMap(textsOfTool))
  if (format?.kind === 'schema') texts.push(JSON.stringify(format.schema))
  return { text: texts.join('\n'), overhead: messages.length * TURN_TOKENS + tools.length * TOOL_TOKENS, media }
}

function textsOf(part: ConversationPart, take: (part: ConversationPart) => void): readonly string[] {
  switch (part.kind) {
    case 'text':
    case 'reasoning':
    case 'refusal':
      return [part.text]
    case 'call':
      return [part.name, part.arguments]
    case 'result':
      part.parts.forEach(take)
      return []
    case 'native':
      return [JSON.stringify(part.value) ?? '']
    default:
      return documentText(part)
  }
}

const documentText = ({ source, name }: MediaPart): readonly string[] =>
  source.at === 'text' ? [...(name === undefined ? [] : [name]), source.text] : []

function textsOfTool(tool: Tool): readonly string[] {
  if (tool.kind === 'native') return [JSON.stringify(tool.value) ?? '']
  if (tool.kind === 'search') return []
  const schema = tool.kind === 'function' ? tool.schema : tool.grammar
  return [tool.name, tool.description ?? '', ...(schema === undefined ? [] : [JSON.stringify(schema)])]
}
