// A conversation that changes its model in the middle of a loop of tools, and back: nothing is refused, calls and
// results stay, the state of one origin never reaches another, and comes back to its own byte for byte.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { issueState, issueStateBytes } from '../../tools/fake-upstream/reasoning-state.ts'
import type { Harness } from '../support/gateway.ts'
import type { Client, Reply, Session, Way } from './clients/client.ts'
import { clients } from './clients/list.ts'
import { startMatrix } from './matrix.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf } from './upstreams.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startMatrix()
})
afterAll(() => harness.stop())

/** Whose state the fake upstream issues in each dialect; chat has none. */
const owners: Readonly<Record<Dialect, string | undefined>> = {
  'openai-chat': undefined,
  'openai-responses': 'responses',
  'anthropic-messages': 'messages',
  'gemini': 'gemini',
  'ark': 'ark',
}

const thought = 'Let me think about it.'

/** What this upstream issued with its answer to this request, and wants back. */
function stateOf(dialect: Dialect, ordinal: number): string | undefined {
  const by = owners[dialect]
  if (by === undefined) return undefined
  return dialect === 'gemini'
    ? issueStateBytes({ by, ordinal, text: thought })
    : issueState({ by, ordinal, text: thought })
}

/** The owners of all state that a request holds, also of what is in base64 or in our own wrapping. */
function ownersIn(sent: string): ReadonlySet<string> {
  const opened = sent.replaceAll(/[A-Za-z0-9+/_-]{16,}={0,2}/g, text => `${text} ${opens(opens(text))}`)
  return new Set(Array.from(opened.matchAll(/\bsig-([a-z]+)-/g), match => match[1]!))
}

const opens = (text: string): string =>
  text.replaceAll(/[A-Za-z0-9+/_-]{16,}={0,2}/g, one => `${one} ${Buffer.from(one, 'base64').toString('latin1')}`)

interface Talk {
  readonly client: Client
  readonly way: Way
}

class Conversation {
  readonly #session: Session
  readonly #way: Way
  #turns: readonly unknown[] = []

  constructor({ client, way }: Talk, key: string) {
    this.#session = client.connect(harness.url, key)
    this.#way = way
  }

  say(upstream: Dialect, text: string): Promise<Reply> {
    return this.#go(upstream, [this.#session.user(text)])
  }

  answer(upstream: Dialect, { calls }: Reply): Promise<Reply> {
    const results = calls.map(({ id, name }) => ({ id, name, text: `${name} says sunny` }))
    return this.#go(upstream, this.#session.results(results))
  }

  async #go(upstream: Dialect, more: readonly unknown[]): Promise<Reply> {
    const turns = [...this.#turns, ...more]
    const wish = { model: modelOf(upstream, 'think'), turns, tools: ['map', 'clock'], thinking: true }
    const reply = await this.#session.ask(this.#way, wish)
    this.#turns = [...turns, ...reply.turns]
    return reply
  }
}

const lastRequest = () => {
  const { ordinal, body } = harness.upstream.requests.at(-1)!
  return { ordinal, text: Buffer.from(body).toString() }
}

function expectOnlyOwn(upstream: Dialect, text: string): void {
  const own = owners[upstream]
  expect([...ownersIn(text)].filter(owner => owner !== own)).toEqual([])
}

const pairs = dialects.flatMap(a => dialects.filter(b => b !== a).map(b => [a, b] as const))
const callers = dialects.map(dialect => clients.find(client => client.dialect === dialect)!)
const talks = callers.flatMap((client, at) => [{ client, way: at % 2 === 0 ? 'stream' : 'plain' }] as const)

describe.each(talks.map(talk => [`${talk.client.name}, ${talk.way}`, talk] as const))('%s', (_name, talk) => {
  test.each(pairs)('P33: from %s to %s and back', async (a, b) => {
    const conversation = new Conversation(talk, await harness.key())
    const called = await conversation.say(a, 'use map {"city":"Paris"}')
    expect(called.calls).toMatchObject([{ name: 'map', given: { city: 'Paris' } }])
    const stateOfA = stateOf(a, lastRequest().ordinal)

    const answered = await conversation.answer(b, called)
    expect(answered).toMatchObject({ calls: [], finish: 'stop' })
    const atB = lastRequest().text
    for (const kept of ['map says sunny', 'Paris']) expect(atB).toContain(kept)
    expectOnlyOwn(b, atB)

    const again = await conversation.say(b, 'use clock {"city":"Rome"}')
    expect(again.calls).toMatchObject([{ name: 'clock', given: { city: 'Rome' } }])
    const stateOfB = stateOf(b, lastRequest().ordinal)

    const back = await conversation.answer(a, again)
    expect(back).toMatchObject({ calls: [], finish: 'stop' })
    const atA = lastRequest().text
    for (const kept of ['map says sunny', 'clock says sunny', 'Paris', 'Rome']) expect(atA).toContain(kept)
    expectOnlyOwn(a, atA)
    if (stateOfA !== undefined) expect(atA).toContain(stateOfA)

    const last = await conversation.say(b, 'Thank you')
    expect(last.text).toBe('Thank you')
    const atLast = lastRequest().text
    expectOnlyOwn(b, atLast)
    if (stateOfB !== undefined) expect(atLast).toContain(stateOfB)
  })
})
