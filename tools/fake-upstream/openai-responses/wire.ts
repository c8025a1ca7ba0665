// The OpenAI Responses dialect and its errors. The response object is in response.ts, the events are in frames.ts.

import type { Dialect, ErrorFields } from '../dialect.ts'
import { writeError } from '../openai-chat/wire.ts'
import { writeFrames } from './frames.ts'
import { findResponsesProblem } from './problem.ts'
import { readResponsesRequest } from './request.ts'
import { responseJson, statusOfReply } from './response.ts'

function errorEvent(error: ErrorFields): string {
  const { message, type = 'server_error', param = null, code = type } = error
  return JSON.stringify({ type: 'error', sequence_number: 2, error: { type, code, message, param } })
}

export const responsesWire: Dialect = {
  name: 'openai-responses',
  traits: { terminal: true, opening: true, choices: false, places: true, earlyUsage: false },
  read: readResponsesRequest,
  problem: findResponsesProblem,
  plain: reply => responseJson(reply, statusOfReply(reply)),
  frames: writeFrames,
  error: writeError,
  errorFrame: error => ({ kind: 'error', event: 'error', data: errorEvent(error) }),
  failedFrame: (reply, error) => ({
    kind: 'error',
    event: 'response.failed',
    data: `{"type":"response.failed","sequence_number":99,"response":${responseJson(reply, 'failed', error)}}`,
  }),
}
