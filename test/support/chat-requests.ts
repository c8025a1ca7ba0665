// Reads requests of the openai-chat dialect into neutral conversations, for the tests of that dialect.

import { Refusal } from '../../src/base/errors.ts'
import type { Call } from '../../src/protocols/neutral/call.ts'
import type { Conversation } from '../../src/protocols/neutral/conversation.ts'
import type { ChatFlavour } from '../../src/protocols/openai-chat/flavour.ts'
import { openaiChatFlavour } from '../../src/protocols/openai-chat/flavour.ts'
import { readConversation } from '../../src/protocols/openai-chat/read-conversation.ts'
import { readChatCall } from '../../src/protocols/openai-chat/request.ts'

export const hello = { role: 'user', content: 'hello' }

/** The conversation of a request with one message and these fields. */
export function readChat(
  fields: object,
  flavour: ChatFlavour = openaiChatFlavour,
  recall?: Call['recall'],
): Conversation {
  const body = { model: 'a/b', messages: [hello], ...fields }
  const call = readChatCall(Buffer.from(JSON.stringify(body)), flavour)
  if (recall !== undefined) call.recall = recall
  return readConversation(call, flavour)
}

/** The field for which a request is refused; undefined if the request is accepted. */
export function refusedParam(fields: object, flavour?: ChatFlavour): string | undefined {
  try {
    readChat(fields, flavour)
  } catch (error) {
    if (error instanceof Refusal) return error.extras.param
    throw error
  }
  return undefined
}
