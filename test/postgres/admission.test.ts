// A call on a process that has not heard of a change yet: its hold tells, and the call is admitted again. The stages up
// to the hold and the ledger are real; routing and the upstream are not.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Refusal } from '../../src/base/errors.ts'
import type { NanosPerMillion } from '../../src/base/money/money.ts'
import { buildSecretRing } from '../../src/base/secrets/secret-ring.ts'
import { plainNames } from '../../src/base/text/rule-names.ts'
import { buildLedger } from '../../src/billing/ledger.ts'
import { KeyDirectory } from '../../src/identity/key-directory.ts'
import { digestKey, mintKey } from '../../src/identity/key-format.ts'
import { GateLease } from '../../src/limits/gate.ts'
import { limitedKeyOf } from '../../src/limits/limited-call.ts'
import { Limits } from '../../src/limits/limits.ts'
import { buildAuthenticate } from '../../src/pipeline/10-authenticate.ts'
import { buildLimitRate, buildRefuseUnread } from '../../src/pipeline/20-limit-rate.ts'
import { buildHold } from '../../src/pipeline/35-hold.ts'
import type { Exchange } from '../../src/pipeline/exchange.ts'
import { ActiveCalls } from '../../src/pipeline/lifetime/active-calls.ts'
import type { Ingress, PipelineParts } from '../../src/pipeline/pipeline.ts'
import { buildPipeline } from '../../src/pipeline/pipeline.ts'
import { sizeOf } from '../../src/pipeline/route/call-size.ts'
import { LargeAnswers } from '../../src/pipeline/settle/large-answers.ts'
import { openaiChat } from '../../src/protocols/openai-chat/dialect.ts'
import { callReads } from '../../src/store/engine/reader.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { PostgresChanges } from '../../src/store/postgres/changes.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { Model } from '../../src/upstreams/provider.ts'
import { defaultTimeouts } from '../../src/upstreams/timeouts.ts'
import { requests, row } from '../limits/rows.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const by = { actor: 'test' }
const pepper = buildSecretRing('p'.repeat(32))
const key = mintKey()
const body = Buffer.from(JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content: 'hi' }] }))
const rate = 1_000_000n as NanosPerMillion
const price = { price: { rates: { input: rate, output: rate }, cases: [] }, version: 1, perMille: 1_000n, atMs: 0 }
const model: Model = { id: 'b', outputTokensMax: 10 }
const can = { capsThought: true }

describe.skipIf(!hasPostgres)('a call that was admitted before a change', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let operations: PostgresOperations
  let closing: PostgresChanges[] = []

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open({ connections: 4, deadlineMs: 60_000 })
    await createSchema(pool)
    operations = new PostgresOperations(pool, { slot: 1 })
    const named = { id: 1_011, accountId: 11, existing: false, digest: digestKey(key, pepper.newest).toString('hex') }
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null }
    await operations.run('createKey', { ...named, ...about, credit: '1000000', creditRef: 11 }, by)
  })
  afterEach(async () => {
    await Promise.all(closing.map(changes => changes.close()))
    closing = []
  })

  /** A process that hears of changes only when it asks. */
  async function openProcess() {
    const changes = new PostgresChanges(pool, { onError: () => {} })
    closing.push(changes)
    const nothing = async (): Promise<void> => {}
    /** `beforeHold` runs when the call has its key and its rules. */
    const seen = { refreshes: 0, forwarded: 0, onRefresh: nothing, beforeHold: nothing }
    const keys = new KeyDirectory({
      find: digest => pool.readPoint(callReads.findKey(digest)),
      nowMs: () => 0,
      ...{ knownMax: 9, unknownMax: 9, unknownMs: 1_000 },
    })
    changes.subscribe('keys', () => keys.clear())
    await changes.refresh()
    const owner = await Membership.join(pool, { version: '1', address: 'test' })
    const connection = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const writer = new LedgerWriter(connection, { owner, onFenced: () => {}, waitedMs: () => 0 })
    const limits = new Limits()
    const clock = { limits, nowMs: () => 0 }
    const ledger = buildLedger({ writer: writer as never, onShortfall: () => {} })
    const largeAnswers = new LargeAnswers(() => 0)
    const authenticate = buildAuthenticate({ keys, pepper, dateMs: Date.now })
    const stages = {
      configuration: {
        get revision() {
          return changes.revision
        },
        async refresh() {
          seen.refreshes++
          await changes.refresh()
          await seen.onRefresh()
        },
      },
      authenticate,
      limitRate: buildLimitRate(clock),
      conversationId: () => undefined,
      refuseUnread: buildRefuseUnread(clock),
      targets: { namesOf: (asked: string) => ({ model: asked, names: plainNames(asked) }) },
      route: (permit: object, { call }: { call: Parameters<typeof sizeOf>[0] }) => {
        const option = { name: 'a/b' }
        const candidate = {
          provider: { id: 'a', can, speaks: {}, times: defaultTimeouts },
          model,
          price,
          size: sizeOf(call, model, can),
          option,
        }
        return { permit, candidates: [{ ...candidate, channels: [], upstreamProtocol: openaiChat }] }
      },
      previousResponses: { find: () => undefined, storedAt: () => undefined },
      references: {
        async narrow(route: unknown) {
          await seen.beforeHold()
          return route
        },
      },
      hold: buildHold({ ledger, countTokens: async () => undefined, largeAnswers }),
      async forward() {
        seen.forwarded++
      },
    }
    const end = (exchange: Exchange, text: string): Response => {
      exchange.lifetime.close()
      return new Response(text)
    }
    const parts = {
      stages,
      replies: {
        async answer(exchange: Exchange, opening: Promise<unknown>) {
          await opening
          return end(exchange, 'answered')
        },
        refuse: async (exchange: Exchange, fault: unknown) =>
          end(exchange, fault instanceof Refusal ? fault.code : String(fault)),
      },
      disconnects: { onDisconnect: () => {}, onCallOver: () => {} },
      activeCalls: new ActiveCalls(() => 0),
      gate: { admit: () => Object.create(GateLease.prototype, { release: { value: () => {} } }), level: 0 },
      settler: { checkUnsettled: () => {} },
      onEnd: undefined,
      nowMs: () => 0,
      dateMs: () => 0,
    } as unknown as PipelineParts
    const runCall = buildPipeline(parts)
    let nextCall = owner.slot * 1_000
    async function call(): Promise<string> {
      const ingress = {
        ...{ path: '/', callId: ++nextCall, requestId: 'req', endpoint: 'chat', address: () => '' },
        header: (name: string) => (name === 'x-api-key' ? key : undefined),
        query: () => null,
        ...{ onDisconnect: () => {}, releaseConnection: () => {}, closeConnection: () => {} },
        readBody: async () => body,
      } as unknown as Ingress
      return await (await runCall(ingress, openaiChat)).text()
    }
    const left = async (): Promise<number> => {
      const header = (name: string): string | undefined => (name === 'x-api-key' ? key : undefined)
      const caller = await authenticate({ header, query: () => null, address: () => '', endpoint: 'chat' })
      return limits.quotasOfKey(limitedKeyOf(caller), 0).find(({ resource }) => resource === 'requests')!.remaining
    }
    return { call, seen, left, limits }
  }
  const heldCount = async (): Promise<number> =>
    Number((await pool.transact(postgresQuery<{ n: bigint }>('SELECT count(*) AS n FROM hold').get()))!.n)

  test('is refused if its key was revoked or disabled', async () => {
    const changes = [
      () => operations.run('setKey', { id: 1_011, disabled: true } as never, by),
      () => operations.run('revokeKey', { id: 1_011 }, by),
    ]
    for (const [at, change] of changes.entries()) {
      await operations.run('setKey', { id: 1_011, disabled: false } as never, by)
      const { call, seen } = await openProcess()
      expect(await call()).toBe('answered')
      await change()
      expect(await call()).toBe('key_invalid')
      // The process got no notification: it has asked when the hold was refused.
      expect(seen).toMatchObject({ forwarded: 1, refreshes: 1 })
      expect(await heldCount()).toBe(at + 1)
    }
  })

  test('is held with the new rules, and its limits count it once', async () => {
    const { call, seen, left } = await openProcess()
    await call()
    const before = await left()
    await pool.runScript("UPDATE tier SET price_per_mille = 2000 WHERE name = 'free'")
    expect(await call()).toBe('answered')
    expect(seen).toMatchObject({ forwarded: 2, refreshes: 1 })
    expect(await left()).toBe(before - 1)
    await pool.runScript(
      "INSERT INTO price (model, origin, price, author, made_ms) VALUES ('a/b', 'operator', '{}', 'x', 0)",
    )
    expect(await call()).toBe('answered')
    expect(seen).toMatchObject({ forwarded: 3, refreshes: 2 })
  })

  test('is counted by a limit that was set meanwhile', async () => {
    const { call, seen, limits } = await openProcess()
    await pool.runScript("UPDATE tier SET price_per_mille = 2000 WHERE name = 'free'")
    seen.onRefresh = async () => limits.setRules([row(1, requests(1))])
    expect([await call(), await call()]).toEqual(['answered', 'qpm_exceeded'])
    expect(seen).toMatchObject({ forwarded: 1, refreshes: 1 })
  })

  test('is held although rules change faster than they are read, with rules that were read after it arrived', async () => {
    const { call, seen } = await openProcess()
    const change = (): Promise<void> => pool.runScript("UPDATE tier SET qpm = qpm + 1 WHERE name = 'free'")
    seen.beforeHold = change
    expect(await call()).toBe('answered')
    expect(seen).toMatchObject({ forwarded: 1, refreshes: 4 })
    // Its key counts up to the end.
    seen.beforeHold = async () => {
      if (seen.refreshes === 8) await operations.run('revokeKey', { id: 1_011 }, by)
      await change()
    }
    expect(await call()).toBe('key_invalid')
    expect(seen).toMatchObject({ forwarded: 1, refreshes: 9 })
  })

  test('waits while its key changes again and again, and is refused if that does not end', async () => {
    const { call, seen } = await openProcess()
    let count = 0
    const change = (): Promise<void> => pool.runScript(`UPDATE api_key SET name = 'name ${++count}'`)
    seen.beforeHold = async () => void (seen.refreshes < 6 && (await change()))
    expect(await call()).toBe('answered')
    expect(seen).toMatchObject({ forwarded: 1, refreshes: 6 })
    seen.beforeHold = change
    expect(await call()).toBe('storage_away')
    expect(seen).toMatchObject({ forwarded: 1, refreshes: 18 })
    seen.onRefresh = async () => {
      throw new Error('the database does not answer')
    }
    expect(await call()).toBe('storage_away')
    expect(await heldCount()).toBe(1)
  })
})
