// Names the bytes of a body in a record, so that what came and what went can be shown to be what somebody says.

import { hash } from 'node:crypto'
import { hashTaken } from '../protocols/large-json.ts'

/** The first half of its SHA-256. */
export const bodyHash = (body: Uint8Array): string => (hashTaken(body) ?? hash('sha256', body, 'hex')).slice(0, 32)
