// Idempotency keys: the same key with the same request runs once, and later requests get the same answer again.
//
// The key is looked up before routing, so that an answer can be replayed even if its model no longer exists. The claim
// in the transaction of the hold decides: of several calls at once, one gets the key.

import { createHash } from 'node:crypto'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Seal, SealLocation } from '../../base/secrets/seal.ts'
import type { HoldOutcome } from '../../billing/ledger.ts'
import { hashForm } from '../../protocols/request/large-form.ts'
import { getBodyHash } from '../../protocols/request/large-json.ts'
import type { Reader } from '../../store/engine/reader.ts'
import type { HoldInput } from '../../store/ledger/hold-types.ts'
import { expiredBefore } from '../../store/ledger/idempotency-rows.ts'

/** The idempotency key of a call. */
export interface Claim {
  /** In the form that the ledger takes. */
  readonly key: NonNullable<HoldInput['idempotency']>
}

export interface ClaimRequest {
  readonly path: string
  /** The body that the key stands for, if it is not the one that is read. */
  readonly claimedBody?: Buffer | undefined
  header(name: string): string | undefined
  query?(name: string): string | null
}

const PRINTABLE = /^[\x21-\x7e]+$/

/** Undefined if the header is missing or empty. */
export function readClaim(ingress: ClaimRequest, body: Buffer): Claim | undefined {
  const name = ingress.header('idempotency-key')
  if (name === undefined || name === '') return undefined
  if (name.length > bounds.idempotencyKeyCharsMax || !PRINTABLE.test(name)) {
    throw new Refusal('idempotency_key_invalid', `${name.length} characters`)
  }
  // The query names the format of the answer, and a stored answer has only one format.
  const form = ingress.query?.('alt') ?? ingress.query?.('$alt') ?? null
  const target = form === null ? ingress.path : `${ingress.path}?alt=${form}`
  // A large body was already hashed outside the main thread; that hash stands for it.
  const { claimedBody = body } = ingress
  const ofForm = hashForm(claimedBody, ingress.header('content-type') ?? '')
  const taken = ofForm === undefined ? getBodyHash(claimedBody) : `form:${ofForm}`
  const content = taken === undefined ? claimedBody : `sha256:${taken}`
  const fingerprint = createHash('sha256').update(`${target}\n`).update(content).digest('hex')
  return { key: { name, fingerprint } }
}

/** The key was used before for the same request. It is a refusal only if that call has no answer to send again. */
export class RepeatedRequest extends Refusal {
  readonly callId: number

  constructor(code: 'idempotency_not_kept' | 'idempotency_running', callId: number, extras: Refusal['extras']) {
    super(code, textId('req', callId), extras)
    this.callId = callId
  }
}

/** How long to wait before asking again; it is unknown how long the other call will take. */
const RUNNING_RETRY_MS = 1_000

/** Throws where another call has the key. */
export function throwIfTaken(held: HoldOutcome): void {
  if (!('callId' in held)) return
  const { callId, done } = held
  const original = textId('req', callId)
  if (done === 'finished') {
    throw new RepeatedRequest('idempotency_not_kept', callId, { hint: hintOf('call_answered', { call: original }) })
  }
  const hint = hintOf('call_repeated', { call: original })
  if (done === 'other_body') throw new Refusal('idempotency_mismatch', original, { hint })
  throw new RepeatedRequest('idempotency_running', callId, { hint, retryAfterMs: RUNNING_RETRY_MS })
}

export interface StoredAnswer {
  readonly requestId: string
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
}

export interface IdempotencyCheck {
  /** Throws where another call has the key. */
  check(keyId: number, claim: Claim): Promise<void>
  /** The answer of the earlier call, if it is stored. */
  storedAnswer(repeated: RepeatedRequest, accountId: number): Promise<StoredAnswer | undefined>
}

export interface IdempotencyCheckParts {
  readonly reader: Pick<Reader, 'findIdempotencyClaim' | 'storedAnswer'>
  readonly seal: Seal
  readonly log: Log
  dateMs(): number
}

export function buildIdempotencyCheck({ reader, seal, log, dateMs }: IdempotencyCheckParts): IdempotencyCheck {
  return {
    async check(keyId, { key }) {
      const row = await reader.findIdempotencyClaim(keyId, key.name)
      if (row === undefined || (row.finished && row.callId < expiredBefore(dateMs()))) return
      const { callId } = row
      if (row.fingerprint !== key.fingerprint) throwIfTaken({ done: 'other_body', callId })
      throwIfTaken({ done: row.finished ? 'finished' : 'running', callId })
    },
    async storedAnswer({ callId }) {
      const requestId = textId('req', callId)
      try {
        const sealed = await reader.storedAnswer(callId)
        return sealed && { requestId, ...unpack(seal.open(placeOf(callId), sealed)) }
      } catch (fault) {
        log.error('a stored answer cannot be decrypted', { request: requestId, fault: describeFault(fault) })
        return undefined
      }
    },
  }
}

const placeOf = (callId: number): SealLocation => ({ table: 'kept_answer', row: callId, column: 'sealed' })

type PackedAnswer = Omit<StoredAnswer, 'requestId'>

/** Packs the head as one line of JSON, followed by the body. */
export function sealAnswer(seal: Seal, callId: number, { body, ...head }: PackedAnswer): string {
  const packed = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body])
  return seal.seal(placeOf(callId), packed).toString('base64')
}

function unpack(packed: Buffer): PackedAnswer {
  const end = packed.indexOf('\n')
  const head = JSON.parse(packed.toString('utf8', 0, end)) as Omit<PackedAnswer, 'body'>
  return { ...head, body: packed.subarray(end + 1) }
}
