// Names that a caller chooses: of its user, and of what it caches.

import { createHash } from 'node:crypto'

const NAME_CHARS_MAX = 64

/** Upstreams refuse longer names. A hash serves the same purpose: it is the same for each call. */
export const shortened = (name: string | undefined): string | undefined =>
  name === undefined || name.length <= NAME_CHARS_MAX ? name : createHash('sha256').update(name).digest('hex')
