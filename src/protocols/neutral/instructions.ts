// Instructions are messages of the role `system` or `developer`. Some upstreams have no such role, or only before the
// first message of the user.

import type { ConversationMessage, ConversationPart } from './conversation.ts'

export const isInstruction = ({ role }: ConversationMessage): boolean => role === 'system' || role === 'developer'

/**
 * Marks an instruction that is sent as a text of the user, because its position matters more than its role. Without the
 * mark, the model could not tell it from words of the user.
 */
export const markInstruction = (text: string): string => `<system>\n${text}\n</system>`

/** Marks a part of an instruction. An empty text stays empty. */
export const markPart = (part: ConversationPart): ConversationPart =>
  part.kind === 'text' && part.text !== '' ? { ...part, text: markInstruction(part.text) } : part
