// Decides what is stored of a finished call: its answer, if it has an idempotency key, and its bodies, if the owner of
// the key wants them stored.

import { bounds } from '../../base/bounds.ts'
import type { Seal } from '../../base/secrets/seal.ts'
import type { SettleExtras } from '../../billing/ledger.ts'
import type { Bodies } from '../../store/records/bodies.ts'
import type { BodyPart } from '../../store/records/bodies-messages.ts'
import type { Ending, Exchange } from '../exchange.ts'
import type { Claim } from '../lifetime/idempotency.ts'
import { sealAnswer } from '../lifetime/idempotency.ts'
import { Recorder } from './body-recorder.ts'

export interface Keeping {
  /** What the settlement does with the call's idempotency key. */
  claimEnd(exchange: Exchange, ending: Ending): SettleExtras
  /** Passes the bodies to their writer, unless the call was refused before its hold. */
  handOver(exchange: Exchange, ending: Ending): void
}

export interface KeepingParts {
  readonly seal: Seal
  readonly bodies: Pick<Bodies, 'keep' | 'drop'>
}

const nothing: SettleExtras = {}
const release: SettleExtras = { idempotency: 'release' }
const answerTooLarge: SettleExtras = { idempotency: { sealed: null } }

export function buildKeeping({ seal, bodies }: KeepingParts): Keeping {
  return {
    claimEnd(exchange, ending) {
      const { claim, recorder, callId } = exchange
      if (claim === undefined) return nothing
      if (recorder === undefined || !wasAnswered(exchange, ending)) return release
      if (recorder.overflowed) return answerTooLarge
      const { contentType, answer } = recorder
      return { idempotency: { sealed: sealAnswer(seal, callId, { status: 200, contentType, body: answer }) } }
    },
    handOver({ callId, permit, recorder, hold }, { outcome }) {
      if (!permit?.caller.keepsBodies) return
      // Calls that cost nothing must not fill the disk.
      if (hold === undefined && outcome !== 'replayed') return
      if (recorder?.request === undefined) return bodies.drop('the gateway is overloaded')
      const { accountId } = permit.caller
      const answer = { bytes: recorder.answer, truncated: recorder.overflowed }
      bodies.keep({ callId, accountId }, { request: recorder.request, answer })
    },
  }
}

/** A stream that broke off after content is an answer. After a gateway fault the key may be used again. */
function wasAnswered({ call, meter }: Exchange, { outcome }: Ending): boolean {
  if (outcome === 'completed') return true
  return outcome !== 'gateway_fault' && call !== undefined && call.stream && meter.content
}

/** Copies the beginning of a long body, so that the rest can be freed with the call. */
function beginningOf(body: Buffer): BodyPart {
  if (body.length <= bounds.keptBodyBytesMax) return { bytes: body, truncated: false }
  return { bytes: Buffer.from(body.subarray(0, bounds.keptBodyBytesMax)), truncated: true }
}

/** Undefined for an ordinary call, of which nothing is stored. */
export function recorderFor(keepsBodies: boolean, claim: Claim | undefined, body: Buffer): Recorder | undefined {
  if (claim === undefined && !keepsBodies) return undefined
  const bytesMax = claim === undefined ? bounds.keptBodyBytesMax : bounds.keptAnswerBytesMax
  return new Recorder(keepsBodies ? beginningOf(body) : undefined, bytesMax)
}
