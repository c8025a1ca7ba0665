// The callers: each sends one call after the other while a gateway runs, and logs what it saw of each answer. They run in
// the process of the harness, which is not killed.

import type { Ending, EventLog } from './event-log.ts'
import type { CallPlan, Shares } from './plan.ts'
import { planCall } from './plan.ts'

export interface CallersOptions {
  readonly seed: number
  readonly count: number
  readonly keys: readonly string[]
  readonly model: string
  readonly log: EventLog
  readonly gate: CallersGate
  /** After which endings a call with an idempotency key is sent again. */
  readonly again?: readonly Ending[]
  /** What the calls are like; the same as at the upstream. */
  readonly shares?: Shares
}

/** `tries`: how often the call was sent before. */
export interface CallersGate {
  pass(tries: number): Promise<string | undefined>
}

const TRIES_MAX = 5
const DONE = 'data: [DONE]'
const ERROR_EVENT = 'data: {"error"'

export class Callers {
  readonly #options: CallersOptions
  readonly #running: Promise<void>[] = []
  #sent = 0
  #underWay = 0

  constructor(options: CallersOptions) {
    this.#options = options
    for (let caller = 0; caller < options.count; caller++) this.#running.push(this.#callOnAndOn())
  }

  get sent(): number {
    return this.#sent
  }

  get underWay(): number {
    return this.#underWay
  }

  /** Resolves when all callers have stopped, after the gate was closed. */
  async gone(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #callOnAndOn(): Promise<void> {
    const { gate, seed, shares, again = ['broken'] } = this.#options
    for (;;) {
      const plan = planCall(seed, this.#sent++, shares)
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const url = await gate.pass(tries)
        if (url === undefined) return
        this.#underWay++
        const how = await call(url, plan, this.#options)
        this.#underWay--
        if (!again.includes(how) || !plan.named) break
      }
    }
  }
}

async function call(url: string, plan: CallPlan, { keys, model, log }: CallersOptions): Promise<Ending> {
  const { tag } = plan
  const abort = new AbortController()
  const timer = plan.leavesMs === undefined ? undefined : setTimeout(() => abort.abort(), plan.leavesMs)
  const body = JSON.stringify(bodyOf(plan, model))
  const { key, stream, named, outputMax } = plan
  log.write({ kind: 'sent', tag, key, stream, named, outputMax, bytes: Buffer.byteLength(body), ms: Date.now() })
  const received: Received = { status: 0, text: '' }
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'authorization': `Bearer ${keys[key]}`,
        'content-type': 'application/json',
        ...(named && { 'idempotency-key': tag }),
      },
      body,
      signal: abort.signal,
    })
    received.status = response.status
    log.write({ kind: 'head', tag, status: response.status, request: response.headers.get('x-request-id') ?? '' })
    if (!stream && response.ok) log.write({ kind: 'last', tag })
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      received.text += decoder.decode(chunk, { stream: true })
      if (plan.leavesAtContent) abort.abort()
      if (stream && received.text.includes(DONE)) log.write({ kind: 'last', tag })
    }
  } catch {
    // The result is decided below from what was received: clients differ in what they call an error.
  }
  clearTimeout(timer)
  const result = resultOf(received, plan, abort.signal.aborted)
  log.write({ kind: 'ended', tag, ...result })
  return result.how
}

interface Received {
  status: number
  text: string
}

function resultOf({ status, text }: Received, plan: CallPlan, left: boolean): { how: Ending; said?: string } {
  if (status === 0) return { how: left ? 'left' : 'broken' }
  if (status !== 200) return { how: 'refused', said: text.slice(0, 300) }
  if (plan.stream ? text.includes(DONE) && !text.includes(ERROR_EVENT) : isJson(text)) return { how: 'whole' }
  if (text.includes(ERROR_EVENT)) return { how: 'error_event', said: text.slice(text.indexOf(ERROR_EVENT)) }
  return { how: left ? 'left' : 'broken' }
}

function isJson(text: string): boolean {
  try {
    return JSON.parse(text) !== undefined
  } catch {
    return false
  }
}

function bodyOf(plan: CallPlan, model: string): unknown {
  return {
    model: `openai/${model}`,
    user: plan.tag,
    max_tokens: plan.outputMax,
    messages: [{ role: 'user', content: 'Which way does the river run, and how fast?' }],
    ...(plan.stream && { stream: true, stream_options: { include_usage: true } }),
  }
}
