// Errors of the Responses dialect: the same body as chat, or as Ark; in a stream a named event, flat and nested at
// once, because official readers of both kinds are in use.

import type { SpokenError } from '../../base/errors.ts'
import { writeError as writeArkBody } from '../ark/errors.ts'
import { writeError as writeChatBody } from '../openai-chat/errors.ts'
import type { WrittenError } from '../protocol.ts'

/** Some readers want a number, and numbers go up; how far this stream had come is not known here. */
const LAST_NUMBER = 2 ** 31 - 1

type WriteError = (error: SpokenError) => WrittenError

const inStream = (writeBody: WriteError): WriteError =>
  function writeError(error) {
    const { status, body } = writeBody(error)
    const nested = (JSON.parse(body) as { error: Record<string, unknown> }).error
    const event = { ...nested, type: 'error', sequence_number: LAST_NUMBER, error: nested }
    return { status, body, events: `event: error\ndata: ${JSON.stringify(event)}\n\n` }
  }

export const writeError: WriteError = inStream(writeChatBody)
export const writeArkError: WriteError = inStream(writeArkBody)
