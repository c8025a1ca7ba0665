// Writes the answer to a request for which nothing is generated (`generate: false` on a WebSocket): the events of a
// response without output, so that the client gets an id from which it can continue.

import type { AnswerTarget } from '../protocol.ts'
import { buildQueuedResponse } from './stored-responses.ts'
import { writeUsage } from './usage.ts'

export function writeWarmUp(target: AnswerTarget): string {
  const response = { ...buildQueuedResponse(target), status: 'in_progress' }
  const completed = {
    ...response,
    status: 'completed',
    completed_at: target.createdS,
    usage: writeUsage({ input: 0, output: 0 }),
  }
  const events = [
    { type: 'response.created', sequence_number: 0, response },
    { type: 'response.completed', sequence_number: 1, response: completed },
  ]
  return events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}
