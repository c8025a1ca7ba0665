// Converts the ids of tool calls of other dialects to what the upstream accepts: they may be too long, or the provider may
// prescribe their form.

import { createHash } from 'node:crypto'
import type { ConversationMessage } from '../neutral/conversation.ts'
import { shortCallId } from '../neutral/short-call-ids.ts'

const ID_CHARS_MAX = 40

/**
 * Converts the ids of one request. Equal ids give equal results, so that calls and their results still match, also in the
 * next turn of the conversation. Different ids give different results.
 */
export class ChatCallIds {
  readonly #messages: readonly ConversationMessage[]
  /** What every id must match; undefined if only its length is limited. */
  readonly #form: RegExp | undefined
  readonly #chars: number
  readonly #written = new Map<string, string>()
  /** The results so far, and the ids of the request that stay as they are. */
  #taken: Set<string> | undefined

  /** `chars`: the exact number of letters and digits of an id, if the provider prescribes it. */
  constructor(messages: readonly ConversationMessage[], chars: number | undefined) {
    this.#messages = messages
    this.#form = chars === undefined ? undefined : new RegExp(`^[a-zA-Z0-9]{${chars}}$`)
    this.#chars = chars ?? ID_CHARS_MAX
  }

  write(id: string): string {
    if (this.#form === undefined) return shortCallId(id, ID_CHARS_MAX)
    if (this.#form.test(id)) return id
    let written = this.#written.get(id)
    if (written === undefined) {
      written = this.#unusedId(id)
      this.#written.set(id, written)
    }
    return written
  }

  #unusedId(id: string): string {
    const taken = (this.#taken ??= this.#findFittingIds())
    let written = lettersOf(id).slice(0, this.#chars)
    for (let round = 1; taken.has(written); round++) written = lettersOf(`${round} ${id}`).slice(0, this.#chars)
    taken.add(written)
    return written
  }

  #findFittingIds(): Set<string> {
    const ids = this.#messages.flatMap(({ parts }) =>
      parts.flatMap(part => (part.kind === 'call' ? part.id : part.kind === 'result' ? part.callId : [])),
    )
    return new Set(ids.filter(id => this.#form?.test(id)))
  }
}

/** A hash of 43 letters and digits. */
const lettersOf = (text: string): string => createHash('sha256').update(text).digest('base64url').replace(/[-_]/g, 'x')
