// A token is worth what its session is worth at this moment, and no more.

import { expect, test } from 'bun:test'
import { ringOf } from '../../base/secrets/secret-ring.ts'
import { mintToken } from '../../identity/token.ts'
import type { SessionRow } from '../../store/people/people-reader.ts'
import type { SessionCheckParts } from './session-check.ts'
import { buildSessionCheck } from './session-check.ts'

const nowMs = Date.UTC(2026, 5, 1)
const jwtSecret = ringOf('s'.repeat(43))
const row: SessionRow = { id: 2, personId: 1, role: 'admin', ver: 3, expiresMs: nowMs + 1 }
const actor = { personId: 1, role: 'admin', sessionId: 2 }

const told: readonly (readonly [string, Partial<SessionRow> | undefined, unknown])[] = [
  ['that goes on', {}, actor],
  ['of somebody whose role is another by now', { role: 'member' }, { ...actor, role: 'member' }],
  ['whose time is over before that of its token', { expiresMs: nowMs }, undefined],
  ['of an older version', { ver: 4 }, undefined],
  ['of somebody else', { personId: 5 }, undefined],
  ['of the operator, who is nobody’s subject', { personId: 0 }, undefined],
  ['that is gone', undefined, undefined],
]

test.each(told)('a token of a session %s', async (_, change, expected) => {
  const session = (id: number) => (id === 2 && change !== undefined ? { ...row, ...change } : undefined)
  const reader = { people: { session } } as unknown as SessionCheckParts['reader']
  const check = buildSessionCheck({ jwtSecret, reader, dateMs: () => nowMs })
  const holder = { subject: 'usr_00000000001', session: 'ses_00000000002', version: 3 }
  const token = await mintToken(jwtSecret, { ...holder, nowMs, lifeSeconds: 600 })
  expect(await check(token)).toEqual(expected as never)
})
