// A conversation that changes its model in the middle of a tool loop, and back. No request is refused, calls and results
// stay, and reasoning state goes back to its origin byte for byte, and to no other upstream.

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

/** The owner in the reasoning state that the fake upstream issues in each dialect; chat has none. */
const owners: Readonly<Record<Dialect, string | undefined>> = {
  'openai-chat': undefined,
  'openai-responses': 'responses',
  'anthropic-messages': 'messages',
  'gemini': 'gemini',
  'ark': 'ark',
}

const thought = 'Let me think about it.'

/** The reasoning state that this upstream issued for this request, and expects back. */
function stateOf(dialect: Dialect, ordinal: number): string | undefined {
  const by = owners[dialect]
  if (by === undefined) return undefined
  return dialect === 'gemini'
    ? issueStateBytes({ by, ordinal, text: thought })
    : issueState({ by, ordinal, text: thought })
}

/** The owners of all reasoning state in a request, also in base64 or packed by the gateway. */
function ownersIn(sent: string): ReadonlySet<string> {
  const decoded = sent.replaceAll(/[A-Za-z0-9+/_-]{16,}={0,2}/g, text => `${text} ${decodeBase64(decodeBase64(text))}`)
  return new Set(Array.from(decoded.matchAll(/\bsig-([a-z]+)-/g), match => match[1]!))
}

const decodeBase64 = (text: string): string =>
  text.replaceAll(/[A-Za-z0-9+/_-]{16,}={0,2}/g, one => `${one} ${Buffer.from(one, 'base64').toString('latin1')}`)

interface Setting {
  readonly client: Client
  readonly way: Way
}

class Conversation {
  readonly #session: Session
  readonly #way: Way
  #turns: readonly unknown[] = []

  constructor({ client, way }: Setting, key: string) {
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
    const options = { model: modelOf(upstream, 'think'), turns, tools: ['map', 'clock'], thinking: true }
    const reply = await this.#session.ask(this.#way, options)
    this.#turns = [...turns, ...reply.turns]
    return reply
  }
}

const lastRequest = () => {
  const { ordinal, body } = harness.upstream.requests.at(-1)!
  return { ordinal, text: Buffer.from(body).toString() }
}

function expectOwnStateOnly(upstream: Dialect, text: string): void {
  const own = owners[upstream]
  expect([...ownersIn(text)].filter(owner => owner !== own)).toEqual([])
}

const pairs = dialects.flatMap(a => dialects.filter(b => b !== a).map(b => [a, b] as const))
const callers = dialects.map(dialect => clients.find(client => client.dialect === dialect)!)
const settings = callers.flatMap((client, at) => [{ client, way: at % 2 === 0 ? 'stream' : 'plain' }] as const)

describe.each(settings.map(setting => [`${setting.client.name}, ${setting.way}`, setting] as const))(
  '%s',
  (_name, setting) => {
    test.each(pairs)('P33: a conversation moves from %s to %s and back', async (a, b) => {
      const conversation = new Conversation(setting, await harness.key())
      const called = await conversation.say(a, 'use map {"city":"Paris"}')
      expect(called.calls).toMatchObject([{ name: 'map', input: { city: 'Paris' } }])
      const stateOfA = stateOf(a, lastRequest().ordinal)

      const answered = await conversation.answer(b, called)
      expect(answered).toMatchObject({ calls: [], finish: 'stop' })
      const atB = lastRequest().text
      for (const text of ['map says sunny', 'Paris']) expect(atB).toContain(text)
      expectOwnStateOnly(b, atB)

      const secondCall = await conversation.say(b, 'use clock {"city":"Rome"}')
      expect(secondCall.calls).toMatchObject([{ name: 'clock', input: { city: 'Rome' } }])
      const stateOfB = stateOf(b, lastRequest().ordinal)

      const secondAnswer = await conversation.answer(a, secondCall)
      expect(secondAnswer).toMatchObject({ calls: [], finish: 'stop' })
      const atA = lastRequest().text
      for (const text of ['map says sunny', 'clock says sunny', 'Paris', 'Rome']) expect(atA).toContain(text)
      expectOwnStateOnly(a, atA)
      if (stateOfA !== undefined) expect(atA).toContain(stateOfA)

      const last = await conversation.say(b, 'Thank you')
      expect(last.text).toBe('Thank you')
      const atLast = lastRequest().text
      expectOwnStateOnly(b, atLast)
      if (stateOfB !== undefined) expect(atLast).toContain(stateOfB)
    })
  },
)
