// What an operator can do from the command line, on a running gateway or on its data folder alone. Inputs come as
// JSON from a socket that only the operator can open, and are checked all the same.

import { createHash, randomBytes } from 'node:crypto'
import { bounds } from '../base/bounds.ts'
import { parseTextId, textId } from '../base/ids.ts'
import { formatUsd, nanos, parseUsd } from '../base/money.ts'
import type { Secret } from '../base/secret.ts'
import { digestKey, keySuffix, mintKey, parseKey } from '../identity/key-format.ts'
import { mintToken } from '../identity/token.ts'
import { moneyText } from '../store/operations.ts'
import type { Reader } from '../store/reader.ts'
import type { Writer } from '../store/writer.ts'

export interface OperatorParts {
  readonly writer: Pick<Writer, 'run'>
  readonly reader: Pick<Reader, 'balance' | 'findKey'>
  readonly pepper: Secret
  readonly jwtSecret: Secret
  mintId(): number
  dateMs(): number
  /** Told after a key has changed, durably. */
  onKeyChanged(): void
}

/** What the operator asked cannot be done, in a sentence for the terminal. */
export class OperatorError extends Error {}

export type Command = (input: Record<string, unknown>) => Promise<Record<string, unknown>>

const SETUP_LIFE_MS = 3_600_000
const TOKEN_LIFE_SECONDS = 600

export function buildOperator(parts: OperatorParts): Readonly<Record<string, Command>> {
  return {
    'keys-create': input => createKey(parts, input),
    'keys-revoke': input => revokeKey(parts, input),
    'balance': input => balance(parts, input),
    'token': () => token(parts),
    'setup': () => setup(parts),
  }
}

async function createKey(parts: OperatorParts, input: Record<string, unknown>): Promise<Record<string, unknown>> {
  const tier = typeof input.tier === 'string' ? input.tier : 'standard'
  const credit = parseUsd(String(input.credit ?? '0'))
  if (credit === undefined) throw new OperatorError('--credit must be US dollars, such as 5 or 0.25.')
  const qpm = input.qpm === undefined ? null : Number(input.qpm)
  if (qpm !== null && !(Number.isSafeInteger(qpm) && qpm > 0 && qpm <= bounds.qpmMax)) {
    throw new OperatorError(`--qpm must be a whole number from 1 to ${bounds.qpmMax}.`)
  }
  const name = typeof input.name === 'string' && input.name !== '' ? input.name.slice(0, 100) : 'unnamed'
  const key = mintKey()
  const [id, accountId] = [parts.mintId(), parts.mintId()]
  const digest = digestKey(key, parts.pepper).toString('hex')
  const stored = { digest, suffix: keySuffix(key), name, tier, qpm, credit: moneyText(credit) }
  const account = { accountId, existing: false, creditRef: parts.mintId() }
  const created = parts.writer.run('createKey', { id, ...account, ...stored })
  if (typeof input.setting === 'string') {
    // Queued in the same turn, so that both are in one commit.
    parts.writer.run('setSetting', { name: input.setting, value: textId('key', id) }).catch(() => {})
  }
  if ((await created).done === 'tier_unknown') throw new OperatorError(`There is no tier "${tier}".`)
  parts.onKeyChanged()
  return { key, id: textId('key', id), tier, credit: formatUsd(credit) }
}

async function revokeKey(parts: OperatorParts, input: Record<string, unknown>): Promise<Record<string, unknown>> {
  const id = findKeyId(parts, input.key)
  const { done } = await parts.writer.run('revokeKey', { id })
  if (done === 'unknown') throw new OperatorError('There is no such key.')
  parts.onKeyChanged()
  return { id: textId('key', id), state: 'revoked' }
}

async function balance(parts: OperatorParts, input: Record<string, unknown>): Promise<Record<string, unknown>> {
  const id = findKeyId(parts, input.key)
  const row = parts.reader.balance(id)
  if (row === undefined) throw new OperatorError('There is no such key.')
  return {
    id: textId('key', id),
    name: row.name,
    tier: row.tier,
    state: row.revoked ? 'revoked' : 'active',
    balance: formatUsd(nanos(row.balance)),
    held: formatUsd(nanos(row.held)),
  }
}

/** A key is named by itself or by its id. */
function findKeyId(parts: OperatorParts, given: unknown): number {
  const text = typeof given === 'string' ? given : ''
  const key = parseKey(text)
  const id = key === undefined ? parseTextId('key', text) : parts.reader.findKey(digestKey(key, parts.pepper))?.id
  if (id === undefined) throw new OperatorError('There is no such key. Name it by itself (wk-…) or its id (key_…).')
  return id
}

async function token(parts: OperatorParts): Promise<Record<string, unknown>> {
  const mint = { subject: 'operator', role: 'owner', nowMs: parts.dateMs(), lifeSeconds: TOKEN_LIFE_SECONDS }
  return { token: await mintToken(parts.jwtSecret, mint), expiresInSeconds: TOKEN_LIFE_SECONDS }
}

/** A fresh one-time set-up token; the one before it is void. Only its digest is kept. */
async function setup(parts: OperatorParts): Promise<Record<string, unknown>> {
  const setupToken = randomBytes(16).toString('base64url')
  const digest = createHash('sha256').update(setupToken).digest('hex')
  const value = JSON.stringify({ digest, expiresMs: parts.dateMs() + SETUP_LIFE_MS })
  await parts.writer.run('setSetting', { name: 'setup_token', value })
  return { setupToken, expiresInSeconds: SETUP_LIFE_MS / 1_000 }
}
