// Writes errors of the Responses dialect. The body is that of chat, or of Ark. In a stream, the error is a named event
// with its fields both at the top level and nested, because official SDKs of both kinds are in use.

import type { ErrorReply } from '../../base/errors.ts'
import { writeError as writeArkBody } from '../ark/errors.ts'
import { writeError as writeChatBody } from '../openai-chat/errors.ts'
import type { WrittenError } from '../protocol.ts'

/**
 * Some SDKs require a rising sequence number. The last number of the stream is not known here, so this is the highest.
 */
const SEQUENCE_NUMBER_MAX = 2 ** 31 - 1

type WriteError = (error: ErrorReply) => WrittenError

const withEvent = (writeBody: WriteError): WriteError =>
  function writeError(error) {
    const { status, body } = writeBody(error)
    const nested = (JSON.parse(body) as { error: Record<string, unknown> }).error
    const event = { ...nested, type: 'error', sequence_number: SEQUENCE_NUMBER_MAX, error: nested }
    return { status, body, events: `event: error\ndata: ${JSON.stringify(event)}\n\n` }
  }

export const writeError: WriteError = withEvent(writeChatBody)
export const writeArkError: WriteError = withEvent(writeArkBody)
