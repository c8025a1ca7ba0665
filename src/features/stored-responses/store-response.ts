// Stores a response when its call ends, in parallel with the settlement and before the caller gets the end. Where it
// cannot be stored, the caller still gets the answer that was paid for; a loss is listed if the head is not sent yet.

import { bounds } from '../../base/bounds.ts'
import { errorRows } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import { originOf } from '../../pipeline/attempt/translation.ts'
import type { CallEnding, Exchange } from '../../pipeline/exchange.ts'
import { cutOf } from '../../pipeline/exchange.ts'
import type { Settle } from '../../pipeline/settle/settle.ts'
import type { StoredCall } from '../../pipeline/settle/stored-call.ts'
import { buildEndedResponse, isCutCall, toNextInput } from '../../protocols/openai-responses/stored-responses.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ResponseFacts } from '../../store/vault/vault-types.ts'
import type { ResponseBody, ResponseStore } from '../../vault/responses.ts'

const TOO_LARGE = `The response and its input are too large to be stored: at most ${bounds.storedResponseBytesMax / 1024 / 1024} MiB.`

export interface SettleWithResponseParts {
  readonly responses: Pick<ResponseStore, 'put' | 'delete'>
  readonly log: Log
}

/** Settles the call and stores its response. */
export function settleWithResponse(settle: Settle, { responses, log }: SettleWithResponseParts): Settle {
  async function put(facts: ResponseFacts, body: ResponseBody): Promise<boolean> {
    if ((await responses.put(facts, body)) === 'kept') return true
    // What is too large for the vault can still be read at the upstream, if it has the same id there.
    return facts.upstreamId === facts.id && (await responses.put(facts)) === 'kept'
  }

  /** A background response is only ever read from the vault: whoever waits for it must learn that it is not there. */
  async function putFailed(kept: StoredCall, facts: ResponseFacts, reason: string): Promise<void> {
    if (kept.queuedResponse === undefined) return
    const response = buildEndedResponse(kept.queuedResponse, 'failed', reason)
    const failed = { ...facts, status: 'failed', channel: null, upstreamId: null } as const
    await responses.put(failed, { input: kept.input, output: [], response })
  }

  async function store(exchange: Exchange, kept: StoredCall, ending: CallEnding): Promise<ResponseFacts | undefined> {
    const [facts, body] = rowOf(exchange, kept, ending) ?? []
    if (facts === undefined || body === undefined || kept.isDeleted) return undefined
    try {
      exchange.storage.notStored = !(await put(facts, body))
      if (exchange.storage.notStored) {
        log.warn('a response is too large to be stored', { request: exchange.requestId })
        await putFailed(kept, facts, TOO_LARGE)
      }
    } catch (fault) {
      exchange.storage.notStored = true
      log.error('a response could not be stored', { request: exchange.requestId, fault: describeFault(fault) })
    }
    return facts
  }

  async function takeBack(kept: StoredCall, facts: ResponseFacts): Promise<void> {
    try {
      if (kept.queuedResponse === undefined) await responses.delete(facts)
      else await putFailed(kept, facts, errorRows.gateway_fault.message)
    } catch (fault) {
      log.error('a response that is not paid for could not be taken back', {
        response: facts.id,
        fault: describeFault(fault),
      })
    }
  }

  async function settleAndStore(exchange: Exchange, kept: StoredCall, ending: CallEnding): Promise<void> {
    const storing = store(exchange, kept, ending)
    try {
      await settle(exchange, ending)
    } catch (fault) {
      // The caller gets an error instead of the answer, so the answer must not be retrievable either.
      kept.isUnpaid = true
      const facts = await storing
      if (facts !== undefined) await takeBack(kept, facts)
      throw fault
    }
    await storing
  }

  return (exchange, ending) => {
    const { storedCall } = exchange.storage
    if (storedCall === undefined) return settle(exchange, ending)
    exchange.settlement.settledAndStored ??= settleAndStore(exchange, storedCall, ending)
    return exchange.settlement.settledAndStored
  }
}

type StoredRow = readonly [ResponseFacts, ResponseBody]

/** Undefined if there is nothing to store. */
function rowOf(exchange: Exchange, kept: StoredCall, ending: CallEnding): StoredRow | undefined {
  const isCut = cutOf(exchange) !== undefined && ending.contentDelivered === true
  const response = ending.outcome === 'completed' || isCut ? kept.answer() : undefined
  if (response !== undefined) return answeredRow(exchange, kept, { response, isCut })
  if (kept.queuedResponse === undefined) return undefined
  const status = kept.isCancelled ? 'cancelled' : 'failed'
  const ended = buildEndedResponse(kept.queuedResponse, status, errorRows[ending.error ?? 'gateway_fault'].message)
  const facts = { ...responseFacts(exchange, kept, ended), status, channel: null, upstreamId: null } as const
  return [facts, { input: kept.input, output: [], response: ended }]
}

export function responseFacts({ permit, attempt, createdMs }: Exchange, kept: StoredCall, { id }: Json) {
  const { accountId, keyId } = permit!.caller
  const { provider, model } = attempt.candidate!
  return {
    accountId,
    id: id as string,
    keyId,
    model: `${provider.id}/${model.id}`,
    previousId: kept.previousId,
    createdMs,
  }
}

interface CallerAnswer {
  readonly response: Json
  /** The funds ended before the answer did. Its upstream was stopped and has no such response. */
  readonly isCut: boolean
}

function answeredRow(exchange: Exchange, kept: StoredCall, { response, isCut }: CallerAnswer): StoredRow {
  const { attempt } = exchange
  const { responseIdRewrite } = exchange.storage
  const { provider, model } = attempt.candidate!
  const channel = exchange.attempts.at(-1)!.channelId
  const isNative = attempt.translation === undefined
  const isStoredThere = isNative && !isCut && provider.can.keepsResponses && response.store !== false
  const upstreamId = isStoredThere
    ? responseIdRewrite === undefined
      ? (response.id as string)
      : responseIdRewrite.upstreamId
    : undefined
  const facts: ResponseFacts = {
    ...responseFacts(exchange, kept, response),
    status: response.status === 'incomplete' ? 'incomplete' : 'completed',
    channel: upstreamId === undefined ? null : channel,
    upstreamId: upstreamId ?? null,
  }
  const items = Array.isArray(response.output) ? (response.output as readonly Json[]) : []
  const whole = items.some(isCutCall) ? items.filter(item => !isCutCall(item)) : items
  const output = isNative ? toNextInput(whole, originOf(channel, model.id)) : whole
  return [facts, { input: kept.input, output, response: withoutDuplicate(response, output) }]
}

/** The next turn mostly needs the same items that the caller got: then they are stored once. */
function withoutDuplicate(response: Json, output: readonly Json[]): Json {
  const items = response.output
  const isSame =
    Array.isArray(items) && items.length === output.length && items.every((item, at) => item === output[at])
  return isSame ? { ...response, output: null } : response
}

/** The response object as the caller got it. */
export function callerResponse({ response, output }: ResponseBody): Json {
  const stored = response as Json
  return stored.output === null ? { ...stored, output } : stored
}
