// A token is valid only while its session is valid, and has the current role of its person.

import { expect, test } from 'bun:test'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { mintToken } from '../../identity/token.ts'
import type { SessionRow } from '../../store/people/people-reader.ts'
import type { SessionCheckParts } from './session-check.ts'
import { buildSessionCheck } from './session-check.ts'

const nowMs = Date.UTC(2026, 5, 1)
const jwtSecret = buildSecretRing('s'.repeat(43))
const row: SessionRow = { id: 2, personId: 1, role: 'admin', ver: 3, expiresMs: nowMs + 1 }
const actor = { personId: 1, role: 'admin', sessionId: 2 }

const cases: readonly (readonly [string, Partial<SessionRow> | undefined, unknown])[] = [
  ['that is valid', {}, actor],
  ['of a person whose role has changed', { role: 'member' }, { ...actor, role: 'member' }],
  ['that expires before its token', { expiresMs: nowMs }, undefined],
  ['of an older version', { ver: 4 }, undefined],
  ['of another person', { personId: 5 }, undefined],
  ['of the operator, who cannot be the subject of such a token', { personId: 0 }, undefined],
  ['that does not exist', undefined, undefined],
]

test.each(cases)('the actor for a token of a session %s', async (_, change, expected) => {
  const session = (id: number) => (id === 2 && change !== undefined ? { ...row, ...change } : undefined)
  const reader = { people: { session } } as unknown as SessionCheckParts['reader']
  const check = buildSessionCheck({ jwtSecret, reader, dateMs: () => nowMs })
  const holder = { subject: 'usr_00000000001', session: 'ses_00000000002', version: 3 }
  const token = await mintToken(jwtSecret, { ...holder, nowMs, lifeSeconds: 600 })
  expect(await check(token)).toEqual(expected as never)
})
