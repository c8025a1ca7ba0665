// Which models and channels a key may use.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import type { KeyRights } from './key-rights.ts'
import { checkModel, mayUseChannel } from './key-rights.ts'

const all: KeyRights = { allows: null, accountAllows: null, denies: null, requires: null }

function may(rights: Partial<KeyRights>, model: string, asked = model): boolean {
  try {
    checkModel({ ...all, ...rights }, asked, model)
    return true
  } catch (fault) {
    expect(fault).toBeInstanceOf(Refusal)
    expect(fault).toMatchObject({ code: 'model_forbidden', extras: { param: 'model' } })
    return false
  }
}

test.each([
  ['nothing is said', {}, 'any/thing', true],
  ['it is allowed', { allows: ['openai/*', 'smart'] }, 'openai/gpt-4o', true],
  ['another of the list allows it', { allows: ['openai/*', 'smart'] }, 'smart', true],
  ['it is not on the list', { allows: ['openai/*'] }, 'anthropic/claude', false],
  ['it is denied', { denies: ['openai/o1*'] }, 'openai/o1-pro', false],
  ['it is not denied', { denies: ['openai/o1*'] }, 'openai/gpt-4o', true],
  ['denied weighs more than allowed', { allows: ['openai/*'], denies: ['openai/o1*'] }, 'openai/o1', false],
  ['allowed and not denied', { allows: ['openai/*'], denies: ['openai/o1*'] }, 'openai/gpt-4o', true],
  ['names are told apart by case', { allows: ['openai/*'] }, 'OpenAI/gpt-4o', false],
] as const)('%s', (...[, rights, model, is]) => {
  expect(may(rights, model)).toBe(is)
})

test('another name for a model allows what its own does, and hides nothing that is denied', () => {
  expect(may({ allows: ['openai/*'] }, 'openai/gpt-4o', 'smart')).toBe(true)
  expect(may({ allows: ['smart'] }, 'openai/gpt-4o', 'smart')).toBe(true)
  expect(may({ allows: ['clever'] }, 'openai/gpt-4o', 'smart')).toBe(false)
  expect(may({ denies: ['openai/*'] }, 'openai/gpt-4o', 'smart')).toBe(false)
  expect(may({ allows: ['*'], denies: ['smart'] }, 'openai/gpt-4o', 'smart')).toBe(false)
})

test('a channel must have every tag that the key wants', () => {
  expect(mayUseChannel(all, [])).toBe(true)
  expect(mayUseChannel({ ...all, requires: ['eu'] }, [])).toBe(false)
  expect(mayUseChannel({ ...all, requires: ['eu', 'no-training'] }, ['eu'])).toBe(false)
  expect(mayUseChannel({ ...all, requires: ['eu', 'no-training'] }, ['no-training', 'x', 'eu'])).toBe(true)
})
