// The management interface on a data folder of its own, without a gateway: a test sends requests as any actor, on a
// ledger that the test writes itself.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal } from '../../src/base/errors.ts'
import { idAtMs } from '../../src/base/ids.ts'
import type { Store } from '../../src/boot/open-store.ts'
import { openStore } from '../../src/boot/open-store.ts'
import { readConfig } from '../../src/config.ts'
import type { SiteRole } from '../../src/management/actor.ts'
import { buildWebApp } from '../../src/management/web/dispatch.ts'
import type { RecordRow } from '../../src/store/ledger/hold-types.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import { openDatabase } from '../support/database.ts'

export interface Reply {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly response: Response | undefined
  /** The error code of a refusal. */
  readonly code: string | undefined
}

export interface ManagementApp {
  readonly folder: string
  readonly store: Store
  /** Sends a request as this person; 0: the operator; undefined: nobody is signed in. */
  ask(who: Who | undefined, line: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Creates an account with a key, of which these persons are members. */
  account(members?: Readonly<Record<number, number>>): Promise<{ accountId: number; keyId: number }>
  call(call: MadeCall): Promise<number>
  stop(): Promise<void>
}

export interface Who {
  readonly personId: number
  readonly role: SiteRole
}

export const owner: Who = { personId: 0, role: 'owner' }
export const member = (personId: number): Who => ({ personId, role: 'member' })

export interface MadeCall extends Partial<RecordRow> {
  readonly accountId: number
  readonly keyId: number
  readonly agoMs?: number
  /** Instead of `agoMs`: when the call began. */
  readonly atMs?: number
  readonly cost?: MoneyText
}

export async function openManagementApp(): Promise<ManagementApp> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-management-'))
  const env = { WEIR_DATA: folder, WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off', LOG_LEVEL: 'error' }
  const store = await openStore(readConfig(env))
  const { writer, mintId } = store
  const answer = buildWebApp(store.management)
  let at = 0

  async function account(members: Readonly<Record<number, number>> = {}) {
    const [accountId, keyId] = [mintId(), mintId()]
    const keyFields = { pepper: 'aabbccdd', suffix: 'abcd', name: `k${keyId}`, tier: 'pro', qpm: null, existing: false }
    const key = { id: keyId, accountId, digest: keyId.toString(16).padStart(64, '0'), credit: '9000000000' as const }
    await writer.run('createKey', { ...key, ...keyFields, creditRef: mintId() }, { actor: 'cli' })
    const db = openDatabase(join(folder, 'weir.db'))
    for (const [personId, rank] of Object.entries(members)) {
      const person = "INSERT OR IGNORE INTO person (id, email, name, role, created_ms) VALUES (?1, ?1, ?1, 'member', 0)"
      db.run(person, [personId])
      const joins = 'INSERT INTO member (account_id, person_id, rank, added_ms) VALUES (?1, ?2, ?3, 0)'
      db.run(joins, [accountId, personId, rank])
    }
    db.close()
    return { accountId, keyId }
  }

  return {
    folder,
    store,
    account,
    async ask(who, line, body, headers = {}) {
      const [method, target] = line.split(' ') as [string, string]
      const [path, search = ''] = `/api/web/${target}`.split('?') as [string, string?]
      const request = { method, path, search, requestId: 'req_test', address: '127.0.0.1' }
      const actor = who && { ...who, sessionId: 1 }
      const readBody = async (): Promise<Buffer> => Buffer.from(JSON.stringify(body))
      try {
        const reply = await answer({ ...request, actor, header: name => headers[name], readBody })
        if (reply instanceof Response) return { status: reply.status, body: {}, response: reply, code: undefined }
        return { status: reply.status, body: JSON.parse(reply.body || '{}'), response: undefined, code: undefined }
      } catch (fault) {
        if (!(fault instanceof Refusal)) throw fault
        return { status: 0, body: {}, response: undefined, code: fault.code }
      }
    },
    async call({ accountId, keyId, agoMs = 0, atMs = Date.now() - agoMs, cost = '0', ...more }) {
      const callId = idAtMs(atMs) + ++at
      const draft = { dialect: 'openai-chat', provider: 'p', model: 'm', streamed: false, priceVersion: null }
      const keyFields = { ...draft, endUser: null, tags: null }
      const hold = { callId, kind: 'call', accountId, keyId, amount: cost, wants: '0', draft: keyFields } as const
      await writer.run('hold', hold)
      const record = {
        ...keyFields,
        callId,
        accountId,
        keyId,
        lines: null,
        channel: 'p#1',
        status: 200,
        error: null,
        outcome: 'completed',
        rule: 'completed',
        usageSource: 'reported',
        attempts: '[["p#1","answered",5]]',
        timings: null,
        firstContentMs: 20,
        durationMs: 100,
        inputTokens: 10,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        outputTokens: 5,
        reasoningTokens: 0,
        ...more,
      }
      await writer.run('settle', { record, cost })
      return callId
    },
    async stop() {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
