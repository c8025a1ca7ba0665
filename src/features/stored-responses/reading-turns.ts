// Large stored responses and conversations are read one after the other. To decrypt, parse and write 22 MiB of stored
// turns takes the thread that serves calls some hundred milliseconds, and a request of 100 bytes can cause it. So an
// account waits several times as long before its next turn, as it does after it has sent a body of that size.
//
// The size of a conversation is not known before it is read. Work that has read more than its class allows is ended, waits
// for a turn of the next class, and starts from the beginning: while it waits it holds nothing of what it has read.

import { bounds } from '../../base/bounds.ts'
import type { SlotCooldown } from '../../base/collections/fair-queue.ts'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import { Refusal } from '../../base/errors.ts'
import type { ChargeBytes } from '../../vault/responses.ts'

/** The account that a conversation belongs to, and a check whether its caller still waits. */
export interface ReadingOwner {
  readonly name: string
  throwIfGone(): void
}

/** Has the same name as the owner of the account's received bodies. */
export const readingOwner = (accountId: number, throwIfGone: () => void = () => {}): ReadingOwner => ({
  name: `account ${accountId}`,
  throwIfGone,
})

/** Calls `charge` before it reads or writes. It may be started several times. */
export type Work<T> = (charge: ChargeBytes) => Promise<T>

interface SizeClass {
  readonly bytesMax: number
  /** Undefined if no work waits. */
  readonly queue?: FairQueue
}

/**
 * How many times as long as the work has taken its account waits, and everybody waits: one account gets at most a tenth of
 * the serving thread, all accounts together a third, as for long prompts that are received.
 */
const RESTS = { account: 9, total: 2 }

/** What one byte costs on the serving thread: it is decrypted, parsed, written as JSON, and encoded. */
const MS_PER_BYTE = 8 / (1024 * 1024)

/** Several, because a conversation keeps its slot while another thread parses it. */
const PROMPT_SLOTS = 4
const RETRY_MS = 2_000

/** The work has wanted to read more than its class allows. */
class Outgrown extends Error {
  readonly bytes: number

  constructor(bytes: number) {
    super('a conversation is larger than its class')
    this.bytes = bytes
  }
}

export class ReadingTurns {
  readonly #classes: readonly SizeClass[] = [
    { bytesMax: bounds.smallBodyBytesMax },
    { bytesMax: bounds.promptBytesMax, queue: new FairQueue(PROMPT_SLOTS, 1) },
    // One after the other, because of their memory.
    { bytesMax: Number.POSITIVE_INFINITY, queue: new FairQueue(1, 1) },
  ]

  async run<T>(owner: ReadingOwner, work: Work<T>): Promise<T> {
    let leastBytes = 0
    for (const size of this.#classes) {
      if (size.bytesMax < leastBytes) continue
      const done = await runIn(size, owner, work)
      if (done.fault === undefined) return done.value as T
      if (!(done.fault instanceof Outgrown)) throw done.fault
      leastBytes = done.fault.bytes
    }
    throw new Error('the last class has no bound')
  }
}

interface Tried<T> {
  readonly value?: T
  readonly fault?: unknown
  readonly bytes: number
}

/** Never throws: work that fails has cost as much. */
async function tryIn<T>({ bytesMax }: SizeClass, work: Work<T>): Promise<Tried<T>> {
  let bytes = 0
  const charge: ChargeBytes = more => {
    if (bytes + more > bytesMax) throw new Outgrown(bytes + more)
    bytes += more
  }
  try {
    return { value: await work(charge), bytes }
  } catch (fault) {
    return { fault, bytes }
  }
}

async function runIn<T>(size: SizeClass, owner: ReadingOwner, work: Work<T>): Promise<Tried<T>> {
  if (size.queue === undefined) return await tryIn(size, work)
  const signal = AbortSignal.timeout(bounds.bodyWorkerMsMax)
  try {
    return await size.queue.run(owner.name, {
      signal,
      run: async () => {
        owner.throwIfGone()
        return await tryIn(size, work)
      },
      cooldownAfter: ({ bytes }) => restAfter(bytes),
    })
  } catch (fault) {
    if (fault !== signal.reason) throw fault
    throw new Refusal('overloaded', 'stored conversations wait too long in their queue', { retryAfterMs: RETRY_MS })
  }
}

function restAfter(bytes: number): SlotCooldown {
  const servingMs = bytes * MS_PER_BYTE
  return { ownerMs: RESTS.account * servingMs, totalMs: RESTS.total * servingMs }
}
