// Codes of the gateway that pages show have a word. Types hold both languages to the same words, so one of them tells.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorKind } from '../../src/base/errors.ts'
import { errorRows } from '../../src/base/errors.ts'
import { unitNames } from '../../src/base/money/price.ts'
import { chargeRules } from '../../src/billing/who-pays.ts'
import { endpointNames } from '../../src/identity/key-rights.ts'
import { passthroughProtocols } from '../../src/protocols/passthrough-protocols.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import type { AttemptVerdict } from '../../src/routing/attempts.ts'
import type { HealthState } from '../../src/routing/health/health.ts'
import { auditPlans } from '../../src/store/audit-log/plans.ts'
import type { AuditCheck } from '../../src/store/ledger-audit/findings.ts'

const folder = join(import.meta.dir, '..', '..', 'console', 'src')
const textOf = (path: string): string => readFileSync(join(folder, path), 'utf8')

/** The keys of a table. */
const keysOf = (text: string): readonly string[] =>
  Array.from(text.matchAll(/^ {2}'?([\w -]+?)'?:/gm), ([, key]) => key!)

const wordsOf = (table: string): ReadonlySet<string> => new Set(keysOf(textOf(`words/zh/${table}.ts`)))
const missing = (words: ReadonlySet<string>, names: readonly string[], prefix = ''): readonly string[] =>
  names.map(name => `${prefix}${name}`).filter(name => !words.has(name))

/** A type error if a name is missing here. */
const namesOf = <T extends string>(names: Readonly<Record<T, true>>): readonly T[] => Object.keys(names) as T[]

test('every audited operation has a word, and no other', () => {
  const operations = Object.keys(auditPlans)
  expect(operations.length).toBeGreaterThan(50)
  const words = [...wordsOf('audit')].filter(key => key.startsWith('action_'))
  expect(words.sort()).toEqual(operations.map(name => `action_${name}`).sort())
})

test.each(['en/rules', 'zh/hints'])('every rule of who pays has a sentence in %s', file => {
  const table = /export const rules[^{]*\{\n([^]*?)\n\}/.exec(textOf(`words/${file}.ts`))![1]!
  expect([...keysOf(table)].sort()).toEqual(chargeRules.map(({ id }) => id).sort())
})

test('every common error of a call has a sentence, of codes that the gateway has', () => {
  const [own, reasons] = [wordsOf('call-errors'), wordsOf('reasons')]
  const isShown = (code: string): boolean => own.has(code) || reasons.has(`${code}_note`)
  const kinds: readonly ErrorKind[] = ['payment', 'permission', 'rate_limit', 'overloaded', 'upstream', 'timeout']
  /** Not of calls with a key, or of calls that have no record. */
  const others = /^(role|setup|password|origin|registration|tried|explained|tasks|storage)_|^body_too_slow$/
  const codes = Object.entries(errorRows).filter(([, { kind }]) => kinds.includes(kind))
  expect(codes.map(([code]) => code).filter(code => !isShown(code) && !others.test(code))).toEqual([])
  expect([...own].filter(code => !(code in errorRows))).toEqual([])
})

test('every line of a bill has the name of its rate', () => {
  const table = /const feeOf[^{]*\{\n([^]*?)\n\}/.exec(textOf('parts/call-view.tsx'))![1]!
  expect([...keysOf(table)].sort()).toEqual(['request', ...Object.values(unitNames)].sort())
})

test('every dialect of a record has a name', () => {
  const table = /const names[^{]*\{\n([^]*?)\n\}/.exec(textOf('parts/dialects.ts'))![1]!
  const known = Object.values({ ...protocols, ...passthroughProtocols }).map(({ name }) => name)
  expect([...keysOf(table)].sort()).toEqual([...known].sort())
})

test('every endpoint that a key may be restricted to has a name', () => {
  const [own, dialects] = [wordsOf('key-now'), wordsOf('playground')]
  const without = endpointNames.filter(name => !own.has(`endpoint_${name}`) && !dialects.has(`dialect_${name}`))
  expect(without).toEqual([])
})

test('every state of a channel, verdict on an attempt and refusal of a candidate has a word', () => {
  const states = namesOf<HealthState>({
    available: true,
    credential_bad: true,
    broken: true,
    rate_limited: true,
    quota_spent: true,
    upstream_limit: true,
    busy: true,
    concurrency_capped: true,
    requests_capped: true,
    tokens_capped: true,
  })
  const verdicts = namesOf<AttemptVerdict | 'left'>({
    answered: true,
    caller_at_fault: true,
    credential_bad: true,
    forbidden: true,
    rate_limited: true,
    quota_spent: true,
    not_here: true,
    broken: true,
    too_slow: true,
    left: true,
  })
  const limits = ['qpm_exceeded', 'rpd_exceeded', 'tpm_exceeded', 'tpd_exceeded', 'concurrency_exceeded']
  const refusals = [...limits, 'endpoint_forbidden', 'model_forbidden', 'not_affordable', 'no_channel']
  expect(missing(wordsOf('reasons'), [...states, ...verdicts, ...refusals])).toEqual([])
})

test('every check of the ledger, and every account of the gateway itself, has a word', () => {
  const checks = namesOf<AuditCheck>({
    balance: true,
    sum: true,
    held: true,
    budget: true,
    call: true,
    code: true,
    parties: true,
    day: true,
    transfers: true,
    schema: true,
    file: true,
  })
  const words = wordsOf('ledger')
  expect(missing(words, checks, 'check_')).toEqual([])
  const accounts = ['revenue', 'promo', 'shortfall', 'clearing']
  expect([...missing(words, accounts, 'own_'), ...missing(words, accounts, 'about_')]).toEqual([])
})

test('every reason for the end of a session has a word', () => {
  const reasons = ['signed_out', 'revoked', 'stolen', 'password', 'changed', 'removed', 'too_many']
  expect(missing(wordsOf('me'), reasons, 'why_')).toEqual([])
})
