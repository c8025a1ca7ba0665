// Google's older SDK reads a stream by a pattern that begins with `data:`: behind a comment it finds nothing more. All
// other readers of the dialect leave comments out.

import type { Asked } from '../protocol.ts'

/** How that SDK names itself. */
const OLDER_SDK = /\bgenai-js\//

export const refusesComments = (asked: Asked): boolean => OLDER_SDK.test(asked.header('x-goog-api-client') ?? '')

/** A chunk that says nothing, which it takes; an empty object would make others forget the turn. */
export const heartbeat = 'data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]}\r\n\r\n'
