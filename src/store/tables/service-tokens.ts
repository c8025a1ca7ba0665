// The columns of service tokens.

import type { SiteRoleName } from '../people/people.ts'
import { bytes, nullable, number, text, word } from './columns.ts'

export const serviceTokenColumns = {
  id: ['id', number, 'insert', 'audit'],
  name: ['name', text, 'update', 'audit'],
  /** `member`: the token has no role for the site, but a rank in one account. */
  role: ['role', word<SiteRoleName>(), 'insert', 'audit'],
  accountId: ['account_id', nullable(number), 'insert', 'audit'],
  rank: ['rank', nullable(number), 'insert', 'audit'],
  suffix: ['suffix', text, 'insert', 'audit'],
  /** The actor who created it, as in the audit log. */
  creator: ['creator', text, 'insert'],
  createdMs: ['created_ms', number, 'insert'],
  expiresMs: ['expires_ms', nullable(number), 'update', 'audit'],
  usedMs: ['used_ms', nullable(number)],
  /** Until when the text before the last rotation works. */
  oldUntilMs: ['old_until_ms', nullable(number), 'audit'],
  revokedMs: ['revoked_ms', nullable(number), 'audit'],
  version: ['version', number, 'audit'],
} as const

/** Columns that no query returns. */
export const hiddenTokenColumns = {
  digest: ['digest', bytes, 'insert'],
} as const
