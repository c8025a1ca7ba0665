// Keeps a response when its call ends, beside the settle and before its caller is told that it is complete. What cannot
// be kept is no reason to take an answer away that was paid for: it is told, where there still is a head to tell it in.

import { errorRows } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import { originOf } from '../../pipeline/attempt/translation.ts'
import type { Ending, Exchange } from '../../pipeline/exchange.ts'
import type { Settle } from '../../pipeline/settle/settle.ts'
import type { KeptCall } from '../../pipeline/settle/stored-call.ts'
import { endedResponse, outputToFollow } from '../../protocols/openai-responses/state.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ResponseFacts } from '../../store/vault/kept.ts'
import type { ResponseBody, Responses } from '../../vault/responses.ts'

export interface ResponsesKeepingParts {
  readonly responses: Pick<Responses, 'put' | 'delete'>
  readonly log: Log
}

/** Settles, and keeps what is to be kept. */
export function keepingSettle(settle: Settle, { responses, log }: ResponsesKeepingParts): Settle {
  async function put(facts: ResponseFacts, body: ResponseBody): Promise<boolean> {
    if ((await responses.put(facts, body)) === 'kept') return true
    // The upstream has what is too large for us.
    return facts.upstreamId !== null && (await responses.put(facts)) === 'kept'
  }

  async function keep(exchange: Exchange, kept: KeptCall, ending: Ending): Promise<ResponseFacts | undefined> {
    const [facts, body] = keptOf(exchange, kept, ending) ?? []
    if (facts === undefined || body === undefined || kept.isDeleted) return undefined
    try {
      exchange.unkept = !(await put(facts, body))
      if (exchange.unkept) log.warn('a response is too large to be kept', { request: exchange.requestId })
    } catch (fault) {
      exchange.unkept = true
      log.error('a response is not kept', { request: exchange.requestId, fault: describeFault(fault) })
    }
    return facts
  }

  async function both(exchange: Exchange, kept: KeptCall, ending: Ending): Promise<void> {
    const keeping = keep(exchange, kept, ending)
    try {
      await settle(exchange, ending)
    } catch (fault) {
      // Its caller is told that there is no answer: then there is none to be asked for either.
      const facts = await keeping
      if (facts !== undefined && kept.waiting === undefined) await responses.delete(facts).catch(() => {})
      throw fault
    }
    await keeping
  }

  return (exchange, ending) => {
    const { kept } = exchange
    if (kept === undefined) return settle(exchange, ending)
    exchange.ended ??= both(exchange, kept, ending)
    return exchange.ended
  }
}

type Kept = readonly [ResponseFacts, ResponseBody]

/** Undefined where there is nothing to keep. */
function keptOf(exchange: Exchange, kept: KeptCall, ending: Ending): Kept | undefined {
  const response = ending.outcome === 'completed' ? kept.answer() : undefined
  if (response !== undefined) return wholeOf(exchange, kept, response)
  if (kept.waiting === undefined) return undefined
  const status = kept.isCancelled ? 'cancelled' : 'failed'
  const ended = endedResponse(kept.waiting, status, errorRows[ending.error ?? 'gateway_fault'].message)
  const facts = { ...factsOf(exchange, kept, ended), status, channel: null, upstreamId: null } as const
  return [facts, { input: kept.input, output: [], response: ended }]
}

export function factsOf({ permit, route, createdMs }: Exchange, kept: KeptCall, { id }: Json) {
  const { accountId, keyId } = permit!.caller
  const model = `${route!.provider.id}/${route!.model.id}`
  return { accountId, id: id as string, keyId, model, previousId: kept.previousId, createdMs }
}

function wholeOf(exchange: Exchange, kept: KeptCall, response: Json): Kept {
  const { translation, route, renaming } = exchange
  const channel = exchange.attempts.at(-1)!.channelId
  const isNative = translation === undefined
  const isKeptThere = isNative && route!.provider.can.keepsResponses && response.store !== false
  const upstreamId = isKeptThere ? (renaming === undefined ? (response.id as string) : renaming.upstreamId) : undefined
  const facts: ResponseFacts = {
    ...factsOf(exchange, kept, response),
    status: response.status === 'incomplete' ? 'incomplete' : 'completed',
    channel: upstreamId === undefined ? null : channel,
    upstreamId: upstreamId ?? null,
  }
  const said = Array.isArray(response.output) ? (response.output as readonly Json[]) : []
  const output = isNative ? outputToFollow(said, originOf(channel, route!.model.id)) : said
  return [facts, { input: kept.input, output, response: withoutTwice(response, output) }]
}

/** What the next turn needs is mostly what the caller got: then it is kept once. */
function withoutTwice(response: Json, output: readonly Json[]): Json {
  const said = response.output
  const isSame = Array.isArray(said) && said.length === output.length && said.every((item, at) => item === output[at])
  return isSame ? { ...response, output: null } : response
}

/** The response object as its caller got it. */
export function toldResponse({ response, output }: ResponseBody): Json {
  const told = response as Json
  return told.output === null ? { ...told, output } : told
}
