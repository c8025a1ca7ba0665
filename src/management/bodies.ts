// Shows an operator the request and the answer of a call, where its key's owner has them kept.

import { parseTextId } from '../base/ids.ts'
import type { Bodies, BodyPart } from '../store/bodies.ts'

/** Undefined for what is no id of a call. */
export async function showBodies(
  bodies: Pick<Bodies, 'read'>,
  request: unknown,
): Promise<Record<string, unknown> | undefined> {
  const callId = typeof request === 'string' ? parseTextId('req', request) : undefined
  const kept = callId === undefined ? undefined : await bodies.read(callId)
  return kept && { request: textOf(kept.request), answer: textOf(kept.answer) }
}

const textOf = ({ bytes, truncated }: BodyPart): string =>
  Buffer.from(bytes).toString('utf8') + (truncated ? '\n[cut here]' : '')
