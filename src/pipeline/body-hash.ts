// Names the bytes of a body in a record, so that what came and what went can be shown to be what somebody says.

import { createHash } from 'node:crypto'

/** The first half of its SHA-256. */
export const bodyHash = (body: Uint8Array): string => createHash('sha256').update(body).digest('hex').slice(0, 32)
