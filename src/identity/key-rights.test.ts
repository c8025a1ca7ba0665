// Tests when, from where and for what a key may be used, and which models and channels it may use.

import { describe, expect, spyOn, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import { plainNames } from '../base/text/rule-names.ts'
import { AddressRanges } from '../http/address/ranges.ts'
import type { KnownKey } from './key-directory.ts'
import type { EndpointName, KeyRights, KeyUse } from './key-rights.ts'
import { checkModelAllowed, keyProblem, mayUseChannel } from './key-rights.ts'

const all: KeyRights = { allows: null, accountAllows: null, denies: null, requires: null }

function isAllowed(rights: Partial<KeyRights>, model: string, requested = model): boolean {
  try {
    checkModelAllowed({ ...all, ...rights }, { requested, names: plainNames(requested, model) })
    return true
  } catch (fault) {
    expect(fault).toBeInstanceOf(Refusal)
    expect(fault).toMatchObject({ code: 'model_forbidden', extras: { param: 'model' } })
    return false
  }
}

test.each([
  ['without lists', {}, 'any/thing', true],
  ['with a pattern that allows it', { allows: ['openai/*', 'smart'] }, 'openai/gpt-4o', true],
  ['with a later pattern that allows it', { allows: ['openai/*', 'smart'] }, 'smart', true],
  ['without a pattern that allows it', { allows: ['openai/*'] }, 'anthropic/claude', false],
  ['with a pattern that denies it', { denies: ['openai/o1*'] }, 'openai/o1-pro', false],
  ['without a pattern that denies it', { denies: ['openai/o1*'] }, 'openai/gpt-4o', true],
  ['with patterns that allow and deny it', { allows: ['openai/*'], denies: ['openai/o1*'] }, 'openai/o1', false],
  [
    'with a pattern that allows it, and none that denies it',
    { allows: ['openai/*'], denies: ['openai/o1*'] },
    'openai/gpt-4o',
    true,
  ],
  ['with a pattern in other case', { allows: ['openai/*'] }, 'OpenAI/gpt-4o', false],
] as const)('the rights of a key %s decide about a model', (...[, rights, model, expected]) => {
  expect(isAllowed(rights, model)).toBe(expected)
})

test('patterns match the requested name and the own name of a model, also to deny it', () => {
  expect(isAllowed({ allows: ['openai/*'] }, 'openai/gpt-4o', 'smart')).toBe(true)
  expect(isAllowed({ allows: ['smart'] }, 'openai/gpt-4o', 'smart')).toBe(true)
  expect(isAllowed({ allows: ['clever'] }, 'openai/gpt-4o', 'smart')).toBe(false)
  expect(isAllowed({ denies: ['openai/*'] }, 'openai/gpt-4o', 'smart')).toBe(false)
  expect(isAllowed({ allows: ['*'], denies: ['smart'] }, 'openai/gpt-4o', 'smart')).toBe(false)
})

test('a spelling that the caller has chosen can forbid a model, but not allow it', () => {
  const check = (rights: Partial<KeyRights>): void =>
    checkModelAllowed({ ...all, ...rights }, { requested: 'gpt-5-latest', names: plainNames('openai/gpt-5', 'gpt-5') })
  expect(() => check({ allows: ['*-latest'] })).toThrow('model_forbidden')
  expect(() => check({ allows: ['gpt-5'], denies: ['*-latest'] })).toThrow('model_forbidden')
  expect(() => check({ denies: ['gpt-5'] })).toThrow('model_forbidden')
  expect(() => check({ allows: ['gpt-5'] })).not.toThrow()
})

test('what is denied is denied in every spelling; what is allowed only as it is written', () => {
  const names = plainNames('openai/gpt-5.1', 'gpt-5.1')
  const check = (rights: Partial<KeyRights>): void =>
    checkModelAllowed({ ...all, ...rights }, { requested: 'openai/gpt-5.1', names })
  for (const spelling of ['gpt-5.1', 'GPT-5.1', 'gpt-5-1', 'OpenAI/gpt-5_1', 'GPT-5.*']) {
    expect(() => check({ denies: [spelling] })).toThrow('model_forbidden')
  }
  expect(() => check({ allows: ['gpt-5.1'] })).not.toThrow()
  expect(() => check({ allows: ['GPT-5.1'] })).toThrow('model_forbidden')
})

test('the patterns of a key are normalized once, and not by each call', () => {
  const rights = { ...all, denies: Array.from({ length: 50 }, (_, index) => `openai/other-${index}.1`) }
  const model = { requested: 'gpt-5', names: plainNames('openai/gpt-5', 'gpt-5') }
  checkModelAllowed(rights, model)
  const lower = spyOn(String.prototype, 'toLowerCase')
  for (let call = 0; call < 10; call++) checkModelAllowed(rights, model)
  const { length } = lower.mock.calls
  lower.mockRestore()
  expect(length).toBeLessThanOrEqual(10) // the requested name
})

test('a channel must have every tag that the key requires', () => {
  expect(mayUseChannel(all, [])).toBe(true)
  expect(mayUseChannel({ ...all, requires: ['eu'] }, [])).toBe(false)
  expect(mayUseChannel({ ...all, requires: ['eu', 'no-training'] }, ['eu'])).toBe(false)
  expect(mayUseChannel({ ...all, requires: ['eu', 'no-training'] }, ['no-training', 'x', 'eu'])).toBe(true)
})

describe('an account’s rights', () => {
  test('apply in addition to the key’s own, by either name', () => {
    expect(isAllowed({ accountAllows: ['openai/*'] }, 'openai/gpt-4o')).toBe(true)
    expect(isAllowed({ accountAllows: ['openai/*'] }, 'anthropic/claude')).toBe(false)
    expect(isAllowed({ allows: ['*'], accountAllows: ['openai/*'] }, 'anthropic/claude')).toBe(false)
    expect(isAllowed({ allows: ['openai/gpt*'], accountAllows: ['openai/*'] }, 'openai/o1')).toBe(false)
    expect(isAllowed({ allows: ['smart'], accountAllows: ['openai/*'] }, 'openai/gpt-4o', 'smart')).toBe(true)
  })
})

describe('a key', () => {
  const key: KnownKey = {
    limitsKeyId: 1,
    hasOwnLimit: false,
    id: 1,
    version: 1,
    accountId: 2,
    tier: 'pro',
    qpm: 60,
    pricePerMille: 1000,
    ...all,
    explains: false,
    revoked: false,
    disabled: false,
    expiresMs: null,
    untilMs: null,
    endpoints: null,
    addresses: null,
    strictCap: false,
    strict: false,
    keepsBodies: false,
  }
  const use = (address = '192.0.2.1', endpoint: EndpointName | undefined = 'chat'): KeyUse => ({
    address: () => address,
    endpoint,
  })
  const problem = (more: Partial<KnownKey>, keyUse = use(), atMs = 1_000): unknown =>
    keyProblem({ ...key, ...more }, keyUse, atMs)

  test('is valid until the exact time at which it, or its old text, expires', () => {
    for (const date of ['expiresMs', 'untilMs'] as const) {
      expect(problem({ [date]: 1_001 })).toBeUndefined()
      expect(problem({ [date]: 1_000 })).toBe('key_invalid')
      expect(problem({ [date]: 999 })).toBe('key_invalid')
    }
    expect(problem({ expiresMs: 2_000, untilMs: 1_000 })).toBe('key_invalid')
    expect(problem({ expiresMs: 1_000, untilMs: 2_000 })).toBe('key_invalid')
  })

  test('that has ended gets the same error as an unknown key, from any address', () => {
    const ranges = new AddressRanges(['10.0.0.0/8'])
    for (const ended of [{ revoked: true }, { disabled: true }, { expiresMs: 1 }, { untilMs: 1 }]) {
      expect(problem({ ...ended, ranges, endpoints: [] })).toBe('key_invalid')
    }
  })

  test('is checked for address and endpoint', () => {
    const ranges = new AddressRanges(['10.0.0.0/8'])
    expect(problem({ ranges }, use('10.9.9.9'))).toBeUndefined()
    expect(problem({ ranges })).toBe('address_forbidden')
    expect(problem({ ranges, endpoints: ['audio'] })).toBe('address_forbidden')
    expect(problem({ endpoints: ['chat', 'audio'] })).toBeUndefined()
    expect(problem({ endpoints: ['audio'] })).toBe('endpoint_forbidden')
    expect(problem({ endpoints: ['audio'] }, { ...use(), endpoint: undefined })).toBeUndefined()
  })

  test('without address ranges does not read the address', () => {
    const keyUse = { endpoint: 'chat' as const, address: () => expect.unreachable() as never }
    expect(problem({ endpoints: ['chat'], expiresMs: 2_000 }, keyUse)).toBeUndefined()
  })
})
