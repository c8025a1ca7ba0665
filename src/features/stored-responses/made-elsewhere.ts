// Follows and ends responses that another process of the gateway makes. A request to that process is a field of its
// lease of the response, which it polls. Each time its events are requested, it stores the events so far, so a process
// that follows them requests and reads them repeatedly. If it dies, its lease ends, and another process has marked the
// response as failed.

import { bounds } from '../../base/bounds.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import { SseSplitter } from '../../http/sse.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { ResponseStore, StoredResponse } from '../../vault/responses.ts'
import type { Background } from './background.ts'
import { EventFrames } from './event-frames.ts'
import { pause, pauseAfterMs } from './pace.ts'
import { restOfEvents } from './rest-of-events.ts'

export interface MadeElsewhereParts {
  readonly background: Pick<Background, 'isElsewhere' | 'askElsewhere' | 'heartbeatMs'>
  readonly responses: Pick<ResponseStore, 'get'>
  /** All events of a response that is over. */
  eventsOf(stored: StoredResponse): string
  /** Such a response as its caller gets it. */
  responseOf(stored: StoredResponse): Json
  readonly log: Pick<Log, 'warn'>
}

/** A process that has died is noticed within 20 seconds. The server closes a connection that is silent for 30 seconds. */
const ENDED_MS_MAX = 25_000

export class ResponsesMadeElsewhere {
  readonly #parts: MadeElsewhereParts
  readonly #waits = new Map<string, Promise<void>>()
  readonly #followed = new Map<string, EventFrames>()

  constructor(parts: MadeElsewhereParts) {
    this.#parts = parts
  }

  /** Asks for the end of a response. Returns whether it has come in time. */
  async end(owner: VaultId, wish: 'cancel' | 'delete'): Promise<boolean> {
    await this.#parts.background.askElsewhere(owner, wish)
    let timer: ReturnType<typeof setTimeout> | undefined
    const timeout = new Promise<boolean>(resolve => (timer = setTimeout(() => resolve(false), ENDED_MS_MAX)))
    const over = this.#whenOver(owner).then(() => true)
    return await Promise.race([over, timeout]).finally(() => clearTimeout(timer))
  }

  /** The events of a response, those that come as well. All callers that follow it read them together. */
  follow(owner: VaultId): EventFrames {
    const name = nameOf(owner)
    const known = this.#followed.get(name)
    if (known !== undefined) return known
    const frames = new EventFrames(this.#parts.background.heartbeatMs)
    this.#followed.set(name, frames)
    void this.#read(owner, frames)
      .catch(fault => this.#parts.log.warn('a response cannot be followed', { fault: describeFault(fault) }))
      .finally(() => {
        if (this.#followed.get(name) === frames) this.#followed.delete(name)
        frames.close()
      })
    return frames
  }

  async #read(owner: VaultId, frames: EventFrames): Promise<void> {
    const { background, responses } = this.#parts
    for (;;) {
      const sinceMs = performance.now()
      // What is read after the response has ended is all of it.
      const isElsewhere = await background.isElsewhere(owner)
      const stored = await responses.get(owner)
      if (stored?.body === undefined) return
      if (!isElsewhere) return this.#addRest(frames, stored)
      addNew(frames, stored.body.events ?? '')
      await background.askElsewhere(owner, 'events')
      await pause(pauseAfterMs(performance.now() - sinceMs))
      if (!frames.isRead) return void this.#followed.delete(nameOf(owner))
    }
  }

  /** Adds what is missing of a response that is over. */
  #addRest(frames: EventFrames, stored: StoredResponse): void {
    const { eventsOf, responseOf } = this.#parts
    const isStored = Boolean(stored.body?.events)
    if (isStored || frames.count === 0) return addNew(frames, eventsOf(stored))
    // Some events were stored while the response was made, but all of them together did not fit or could not be stored.
    for (const frame of restOfEvents(responseOf(stored), frames.all)) frames.add(frame)
  }

  /** All callers that wait for a response look for it together: one caller can send many requests. */
  #whenOver(owner: VaultId): Promise<void> {
    const name = nameOf(owner)
    let wait = this.#waits.get(name)
    if (wait === undefined) {
      wait = this.#lookUntilOver(owner).finally(() => this.#waits.delete(name))
      this.#waits.set(name, wait)
    }
    return wait
  }

  async #lookUntilOver(owner: VaultId): Promise<void> {
    while (await this.#parts.background.isElsewhere(owner)) await pause()
  }
}

const nameOf = ({ accountId, id }: VaultId): string => `${accountId}/${id}`

/** `text` begins with the events that are known already. */
function addNew(frames: EventFrames, text: string): void {
  let at = 0
  for (const frame of new SseSplitter(bounds.answerBytesMax).push(Buffer.from(text))) {
    if (at++ >= frames.count) frames.add(frame)
  }
}
