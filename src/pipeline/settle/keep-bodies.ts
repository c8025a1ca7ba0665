// Decides what is stored of a finished call: its answer, if it has an idempotency key, and its bodies, if the owner of
// the key wants them stored.

import { bounds } from '../../base/bounds.ts'
import type { Seal } from '../../base/secrets/seal.ts'
import type { SettleExtras } from '../../billing/ledger.ts'
import type { BodyStorage } from '../../store/engine/store-engine.ts'
import type { BodyPart } from '../../store/records/bodies-messages.ts'
import type { CallEnding, Exchange } from '../exchange.ts'
import type { Claim } from '../lifetime/idempotency.ts'
import { sealAnswer } from '../lifetime/idempotency.ts'
import type { AnswerQuota } from './answer-quota.ts'
import { BodyRecorder } from './body-recorder.ts'

export interface CallBodyStorage {
  /** What the settlement does with the call's idempotency key. */
  idempotencyEnd(exchange: Exchange, ending: CallEnding): SettleExtras
  /** Passes the bodies to their writer, unless the call was refused before its hold. */
  storeBodies(exchange: Exchange, ending: CallEnding): void
}

export interface CallBodyStorageParts {
  readonly seal: Seal
  readonly answerQuota: Pick<AnswerQuota, 'take'>
  readonly bodies: Pick<BodyStorage, 'store' | 'countDropped'>
}

const nothing: SettleExtras = {}
const release: SettleExtras = { idempotency: 'release' }
const notStored: SettleExtras = { idempotency: { sealed: null } }

export function buildBodyStorage({ seal, answerQuota, bodies }: CallBodyStorageParts): CallBodyStorage {
  return {
    idempotencyEnd(exchange, ending) {
      const { callId } = exchange
      const { claim, recorder } = exchange.options
      if (claim === undefined) return nothing
      if (recorder === undefined || !wasAnswered(exchange, ending)) return release
      const { contentType, answer, overflowed } = recorder
      const { accountId } = exchange.permit!.caller
      if (overflowed || !answerQuota.take(accountId, answer.length)) return notStored
      return { idempotency: { sealed: sealAnswer(seal, callId, { status: 200, contentType, body: answer }) } }
    },
    storeBodies({ callId, permit, hold, options: { recorder } }, { outcome }) {
      if (!permit?.caller.keepsBodies) return
      // Calls that cost nothing must not fill the disk.
      if (hold === undefined && outcome !== 'replayed') return
      if (recorder?.request === undefined) return bodies.countDropped('the gateway is overloaded')
      const { accountId } = permit.caller
      const answer = { bytes: recorder.answer, truncated: recorder.overflowed }
      bodies.store({ callId, accountId }, { request: recorder.request, answer })
    },
  }
}

/** A stream that broke off after content is an answer. After a gateway fault the key may be used again. */
function wasAnswered({ call, attempt: { meter } }: Exchange, { outcome, contentDelivered }: CallEnding): boolean {
  if (outcome === 'completed' || contentDelivered) return true
  return outcome !== 'gateway_fault' && call !== undefined && call.stream && meter.content
}

/** Copies the beginning of a long body, so that the rest can be freed with the call. */
function beginningOf(body: Buffer): BodyPart {
  if (body.length <= bounds.storedBodyBytesMax) return { bytes: body, truncated: false }
  return { bytes: Buffer.from(body.subarray(0, bounds.storedBodyBytesMax)), truncated: true }
}

/** Undefined for an ordinary call, of which nothing is stored. */
export function recorderFor(keepsBodies: boolean, claim: Claim | undefined, body: Buffer): BodyRecorder | undefined {
  if (claim === undefined && !keepsBodies) return undefined
  const bytesMax = claim === undefined ? bounds.storedBodyBytesMax : bounds.idempotentAnswerBytesMax
  return new BodyRecorder(keepsBodies ? beginningOf(body) : undefined, bytesMax)
}
