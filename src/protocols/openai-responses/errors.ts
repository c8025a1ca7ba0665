// Errors of the Responses dialect: the same body as chat; in a stream a named event, flat and nested at once,
// because official readers of both kinds are in use.

import type { SpokenError } from '../../base/errors.ts'
import { writeError as writeChatError } from '../openai-chat/errors.ts'
import type { WrittenError } from '../protocol.ts'

export function writeError(error: SpokenError): WrittenError {
  const { status, body } = writeChatError(error)
  const nested = (JSON.parse(body) as { error: Record<string, unknown> }).error
  const event = { ...nested, type: 'error', error: nested }
  return { status, body, events: `event: error\ndata: ${JSON.stringify(event)}\n\n` }
}
