// Upstream answers to passthrough calls.

import type { Script } from '../../tools/fake-upstream/script.ts'
import { bytes, chunk, end, head, script } from '../../tools/fake-upstream/script.ts'

export function says(json: unknown, status = 200): Script {
  return saysText(JSON.stringify(json), 'application/json', status)
}

export function saysText(text: string, type: string, status = 200): Script {
  const body = Buffer.from(text)
  return script(head(status, { 'content-type': type, 'content-length': `${body.length}` }), bytes(body), end)
}

/** Sends these chunks, with a proper end by default. */
export function sendsBytes(type: string, chunks: readonly (string | Uint8Array)[], ending = end): Script {
  return script(
    head(200, { 'content-type': type, 'transfer-encoding': 'chunked' }),
    ...chunks.map(one => chunk(one)),
    ending,
  )
}

export function sendsEvents(events: readonly object[], last = ''): Script {
  const texts = events.map(event => `data: ${JSON.stringify(event)}\n\n`)
  return sendsBytes('text/event-stream', last === '' ? texts : [...texts, last])
}

export const nanosOf = (usd: string): bigint => {
  const [whole = '0', part = ''] = usd.split('.')
  return BigInt(whole + part.padEnd(9, '0'))
}
