// Idempotency keys: the same key with the same request is executed once, and its answer is given again.
//
// A key is looked up before routing, so that an answer is given again even where the model is gone by now. What
// counts is the claim in the transaction of the hold: of any number of calls at once, one gets it.

import { createHash } from 'node:crypto'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Seal, SealedPlace } from '../../base/secrets/seal.ts'
import type { Held } from '../../billing/ledger.ts'
import { hashTaken } from '../../protocols/request/large-json.ts'
import type { Reader } from '../../store/engine/reader.ts'
import type { HoldInput } from '../../store/ledger/hold-types.ts'
import { forgottenBefore } from '../../store/ledger/idempotency-rows.ts'

/** Of a call that was sent with an idempotency key. */
export interface Claim {
  /** As the ledger takes it. */
  readonly key: NonNullable<HoldInput['idempotency']>
}

export interface Claiming {
  readonly path: string
  header(name: string): string | undefined
  query?(name: string): string | null
}

const VISIBLE = /^[\x21-\x7e]+$/

/** Undefined without the header, or with an empty one. */
export function readClaim(ingress: Claiming, body: Uint8Array): Claim | undefined {
  const name = ingress.header('idempotency-key')
  if (name === undefined || name === '') return undefined
  if (name.length > bounds.idempotencyKeyCharsMax || !VISIBLE.test(name)) {
    throw new Refusal('idempotency_key_invalid', `${name.length} characters`)
  }
  // It says in which form the answer is to come, and an answer that is kept has but one.
  const form = ingress.query?.('alt') ?? ingress.query?.('$alt') ?? null
  const asked = form === null ? ingress.path : `${ingress.path}?alt=${form}`
  // Of a large body its own hash stands for it, which was taken beside the thread that serves calls.
  const taken = hashTaken(body)
  const said = taken === undefined ? body : `sha256:${taken}`
  const fingerprint = createHash('sha256').update(`${asked}\n`).update(said).digest('hex')
  return { key: { name, fingerprint } }
}

/** The key was used for this same request, which was answered. A refusal only where that answer is not kept. */
export class AnsweredBefore extends Refusal {
  readonly callId: number

  constructor(callId: number) {
    const original = textId('req', callId)
    super('idempotency_not_kept', original, { hint: `That call was ${original}.` })
    this.callId = callId
  }
}

/** How long to wait before asking again; nobody knows how long the other will take. */
const RUNNING_RETRY_MS = 1_000

/** Throws where another call has the key. */
export function throwIfTaken(held: Held): void {
  if (!('callId' in held)) return
  if (held.done === 'finished') throw new AnsweredBefore(held.callId)
  const original = textId('req', held.callId)
  const hint = `That call is ${original}.`
  if (held.done === 'other_body') throw new Refusal('idempotency_mismatch', original, { hint })
  throw new Refusal('idempotency_running', original, { hint, retryAfterMs: RUNNING_RETRY_MS })
}

export interface KeptAnswer {
  readonly requestId: string
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
}

export interface LookBack {
  /** Throws where another call has the key. */
  check(keyId: number, claim: Claim): void
  /** The answer that was given, if it is still there. */
  recall(before: AnsweredBefore): KeptAnswer | undefined
}

export interface LookBackParts {
  readonly reader: Pick<Reader, 'claim' | 'keptAnswer'>
  readonly seal: Seal
  readonly log: Log
  dateMs(): number
}

export function buildLookBack({ reader, seal, log, dateMs }: LookBackParts): LookBack {
  return {
    check(keyId, { key }) {
      const row = reader.claim(keyId, key.name)
      if (row === undefined || (row.finished && row.callId < forgottenBefore(dateMs()))) return
      const { callId } = row
      if (row.fingerprint !== key.fingerprint) throwIfTaken({ done: 'other_body', callId })
      throwIfTaken({ done: row.finished ? 'finished' : 'running', callId })
    },
    recall({ callId }) {
      const requestId = textId('req', callId)
      try {
        const sealed = reader.keptAnswer(callId)
        return sealed && { requestId, ...unpack(seal.open(placeOf(callId), sealed)) }
      } catch (fault) {
        log.error('a kept answer does not open', { request: requestId, fault: describeFault(fault) })
        return undefined
      }
    },
  }
}

const placeOf = (callId: number): SealedPlace => ({ table: 'kept_answer', row: callId, column: 'sealed' })

type Packed = Omit<KeptAnswer, 'requestId'>

/** Its head as a line of JSON, and its body. */
export function sealAnswer(seal: Seal, callId: number, { body, ...head }: Packed): string {
  const packed = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body])
  return seal.close(placeOf(callId), packed).toString('base64')
}

function unpack(packed: Buffer): Packed {
  const end = packed.indexOf('\n')
  const head = JSON.parse(packed.toString('utf8', 0, end)) as Omit<Packed, 'body'>
  return { ...head, body: packed.subarray(end + 1) }
}
