// Stored responses: created, continued, retrieved, cancelled and deleted. A background response moves to its next state
// each time it is retrieved.

import { frameSteps, jsonAnswer, streamHead } from '../answers.ts'
import { arkResponsesFields } from '../ark/wire.ts'
import type { Json } from '../body-fields.ts'
import { bodyOf, objectOf, pathOf, queryOf, stringOf } from '../body-fields.ts'
import { buildReply } from '../demo-models.ts'
import type { Dialect, Problem, Reply } from '../dialect.ts'
import { base36, createdS } from '../dialect.ts'
import { issueState } from '../reasoning-state.ts'
import { RecentItems } from '../recent-items.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'
import type { Script } from '../script.ts'
import { end, script } from '../script.ts'
import { writeFrames } from './frames.ts'
import { findBodyProblem, responsesFields } from './problem.ts'
import { isMessage, itemsOf, readResponsesBody, stateOwner } from './request.ts'
import { outputOf, responseId, responseJson, statusOfReply } from './response.ts'

interface Stored {
  readonly reply: Reply
  /** All input items, with the items of previous responses first. */
  readonly items: readonly Json[]
  status: string
}

/** What the handlers of stored responses need to write their answers. */
export interface ResponseContext {
  readonly dialect: Dialect
  readonly refuse: (problem: Problem) => Script
  readonly speak: (asked: ReturnType<typeof readResponsesBody>, reply: Reply) => Script
}

const storedMax = 100
const itemsMax = 500
const bytesMax = 256 * 1024
const next: Readonly<Record<string, string>> = { queued: 'in_progress' }
const REPEATED_FIELDS = [
  'instructions',
  'max_output_tokens',
  'metadata',
  'parallel_tool_calls',
  'previous_response_id',
  'reasoning',
  'store',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_p',
  'truncation',
  'user',
  'background',
]

const json = (text: string): Script => script(...jsonAnswer(200, text))

export class Responses {
  readonly #kept = new RecentItems<Stored>(storedMax)

  /** POST …/responses */
  create(request: ReceivedRequest, speaking: ResponseContext): Script {
    const given = bodyOf(request)
    if (!isRecord(given)) return speaking.refuse({ message: 'We could not parse the JSON body of your request.' })
    const body = this.#expand(given)
    if (body === undefined) return speaking.refuse(notFound(stringOf(given.previous_response_id), 400))
    const known = speaking.dialect.name === 'openai-responses' ? responsesFields : arkResponsesFields
    const problem = findBodyProblem(body, known, request.ordinal) ?? findBackgroundProblem(body)
    if (problem) return speaking.refuse(problem)
    const asked = readResponsesBody(body, request.ordinal)
    const repeatedFields = Object.fromEntries(
      REPEATED_FIELDS.flatMap(name => (given[name] == null ? [] : [[name, given[name]]])),
    )
    const reply = { ...buildReply(asked, request.ordinal), repeatedFields }
    const inBackground = body.background === true && !asked.stream
    const items = itemsOf(body.input).slice(-itemsMax)
    const stored = { reply, items, status: inBackground ? 'queued' : statusOfReply(reply) }
    if (given.store !== false && request.body.length <= bytesMax) this.#kept.put(responseId(request.ordinal), stored)
    return inBackground ? json(responseJson(reply, 'queued')) : speaking.speak(asked, reply)
  }

  /** Adds the items of the previous response, and replaces references to items by the items. */
  #expand(body: Json): Json | undefined {
    const id = body.previous_response_id
    const before = typeof id === 'string' ? this.#kept.get(id) : undefined
    if (typeof id === 'string' && !before) return undefined
    const own = itemsOf(body.input)
    const named = own.some(item => item.type === 'item_reference') ? this.#itemsById() : undefined
    if (!before && !named) return body
    const whole = own.map(item => (item.type === 'item_reference' ? (named?.get(stringOf(item.id)) ?? item) : item))
    const former: readonly Json[] = before ? [...before.items, ...rememberedOutput(before.reply)] : []
    return { ...body, input: [...former.slice(-itemsMax), ...whole] }
  }

  #itemsById(): ReadonlyMap<string, Json> {
    const outputs = this.#kept.all().flatMap(([, { reply }]) => rememberedOutput(reply))
    return new Map(outputs.map(item => [stringOf(item.id), item]))
  }

  /** Answers …/responses/{id} and the paths below it; undefined for any other path. */
  answer(request: ReceivedRequest, { refuse }: ResponseContext): Script | undefined {
    const [, id = '', rest] = /\/responses\/([^/]+)(?:\/(cancel|input_items))?$/.exec(pathOf(request)) ?? []
    const stored = this.#kept.get(id)
    if (!stored) return refuse(notFound(id, 404))
    const asks = `${request.method} ${rest ?? ''}`
    if (asks === 'GET ') return this.#show(request, stored)
    if (asks === 'GET input_items') return listItems(request, stored.items)
    if (asks === 'POST cancel') return cancel(stored, refuse)
    if (asks !== 'DELETE ') return undefined
    this.#kept.delete(id)
    return json(JSON.stringify({ id, object: 'response', deleted: true }))
  }

  #show(request: ReceivedRequest, stored: Stored): Script {
    const query = queryOf(request)
    if (query.get('stream') === 'true') {
      const after = Number(query.get('starting_after') ?? -1)
      const frames = [...writeFrames(stored.reply)].slice(after + 1)
      stored.status = statusOfReply(stored.reply)
      return script(streamHead, ...frameSteps(frames), end)
    }
    const body = responseJson(stored.reply, stored.status)
    if (stored.status === 'queued' || stored.status === 'in_progress') {
      stored.status = next[stored.status] ?? statusOfReply(stored.reply)
    }
    return json(body)
  }
}

/** The output with its reasoning state, which the provider stores whether it was shown or not. */
function rememberedOutput(reply: Reply): readonly Json[] {
  const whole = reply.choices.map(({ reasoning, ...choice }) =>
    reasoning ? { ...choice, reasoning: { text: reasoning.text } } : choice,
  )
  return outputOf({ ...reply, choices: whole })
}

function notFound(id: string, status: number): Problem {
  const isFormer = status === 400
  const message = isFormer ? `Previous response with id '${id}' not found.` : `Response with id '${id}' not found.`
  return { status, message, ...(isFormer && { param: 'previous_response_id', code: 'previous_response_not_found' }) }
}

function findBackgroundProblem(body: Json): Problem | undefined {
  if (body.background !== true || body.store !== false) return undefined
  return { message: "Background mode requires 'store' to be true.", param: 'store' }
}

function cancel(stored: Stored, refuse: (problem: Problem) => Script): Script {
  if (stored.reply.repeatedFields?.background !== true) {
    return refuse({ message: 'Cannot cancel a synchronous response.', param: 'id' })
  }
  if (stored.status === 'queued' || stored.status === 'in_progress') stored.status = 'cancelled'
  return json(responseJson({ ...stored.reply, choices: [], usage: undefined }, stored.status))
}

function listItems(request: ReceivedRequest, items: readonly Json[]): Script {
  const query = queryOf(request)
  const limit = Math.min(Math.max(Number(query.get('limit') ?? 20) || 20, 1), 100)
  const named: readonly Json[] = items.map((item, at) => ({ id: `item_${base36(at)}`, type: 'message', ...item }))
  const ordered = query.get('order') === 'asc' ? named : named.toReversed()
  const start = query.has('after') ? ordered.findIndex(item => item.id === query.get('after')) + 1 : 0
  const data = ordered.slice(start, start + limit)
  const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
  return json(JSON.stringify({ object: 'list', data, ...ends, has_more: start + limit < ordered.length }))
}

/** POST …/responses/input_tokens */
export function countInput(request: ReceivedRequest): Script {
  const input_tokens = readResponsesBody(objectOf(request), request.ordinal).promptWords
  return json(JSON.stringify({ object: 'response.input_tokens', input_tokens }))
}

/** POST …/responses/compact: returns the user's messages, and everything else as one opaque item. */
export function compact(request: ReceivedRequest): Script {
  const body = objectOf(request)
  const users = itemsOf(body.input).filter(item => isMessage(item) && item.role === 'user')
  const encrypted_content = issueState({ by: stateOwner, ordinal: request.ordinal, text: 'compaction' })
  const sealed = { id: `cmp_fake${base36(request.ordinal)}`, type: 'compaction', encrypted_content }
  const input_tokens = readResponsesBody(body, request.ordinal).promptWords
  const usage = {
    input_tokens,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input_tokens + 1,
  }
  const head = { id: responseId(request.ordinal), object: 'response.compaction', created_at: createdS }
  return json(JSON.stringify({ ...head, output: [...users.slice(-itemsMax), sealed], usage }))
}
