// Parses the input of commands about rules: amounts, members, patterns, tags, proxies. Invalid input throws an
// OperatorError with one sentence, which does not repeat input that may be a secret.

import { bounds } from '../../base/bounds.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { ForbiddenAddress, InvalidAddress } from '../../http/address/operator-address.ts'
import { Proxy } from '../../http/client/proxy.ts'
import type { LimitRow, LimitScope, MemberRow } from '../../store/rules/rules.ts'
import { limitScopes } from '../../store/rules/rules.ts'
import { isTag } from '../../upstreams/provider.ts'
import { OperatorError } from '../operator-error.ts'

const VISIBLE = /^[\x21-\x7e]+$/
/** Separates members that are tried first from those that are tried after them. */
const THEN = 'then'
const NONE = 'none'

/** Parses `100/minute`, or `8` for concurrency. checkLimit decides whether the limit is valid. */
export function parseLimitAmount(input: unknown): Pick<LimitRow, 'amount' | 'span'> {
  const [, amount, span = null] = /^(-?[\d.]+)(?:\/(minute|day))?$/.exec(String(input ?? '')) ?? []
  if (amount !== undefined) return { amount: Number(amount), span: span as LimitRow['span'] }
  throw new OperatorError('A limit must be a whole number with its period, such as 100/minute or 5000/day.')
}

/** Returns the scopes in the order in which they are stored. */
export function parseLimitScopes(input: unknown): readonly LimitScope[] {
  const wanted = input === undefined ? [] : splitCommaList(input)
  const scopes = limitScopes.filter(scope => wanted.includes(scope))
  if (scopes.length === wanted.length) return scopes
  throw new OperatorError('--per must be a list of key, account and model, each at most once, separated by commas.')
}

/** A model name as callers write it, with any number of `*`. */
export function parseModelPattern(input: unknown, name: string): string {
  const text = String(input)
  const max = bounds.modelNameCharsMax
  if (VISIBLE.test(text) && text.length <= max && !text.includes(',')) return text
  throw new OperatorError(`${name} must have 1 to ${max} visible characters and no comma; * matches any characters.`)
}

/** Null: none. Undefined: no input. */
export function parseModelPatterns(input: unknown, name: string): readonly string[] | null | undefined {
  if (input === undefined) return undefined
  const patterns = splitCommaList(input).map(pattern => parseModelPattern(pattern, `Each name of ${name}`))
  if (patterns.length > bounds.keyPatternsMax) {
    throw new OperatorError(`${name} may have at most ${bounds.keyPatternsMax} names.`)
  }
  return patterns.length === 0 ? null : patterns
}

export function parseTags(input: unknown, name: string): readonly string[] | undefined {
  if (input === undefined) return undefined
  const tags = input === NONE ? [] : [...new Set(splitCommaList(input))]
  if (tags.every(isTag) && tags.length <= bounds.tagsMax) return tags
  throw new OperatorError(
    `${name} must be at most ${bounds.tagsMax} words of lower-case letters, digits and dashes, separated by commas.`,
  )
}

export function splitCommaList(input: unknown): readonly string[] {
  return String(input)
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
}

/** A name must also be usable as a member and in a list. checkRoutes checks everything else. */
export function parseRouteName(input: unknown): string {
  const text = String(input ?? '')
  if (!text.includes(',') && text !== THEN && !/=\d+$/.test(text)) return text
  throw new OperatorError('A model name must not contain a comma, end in =number, or be "then".')
}

/** Parses `openai/gpt-4o=3 azure/gpt-4o then anthropic/claude-x`: members with weights and priorities. */
export function parseMembers(input: unknown): readonly MemberRow[] {
  const words = Array.isArray(input) ? input.map(String) : []
  let priority = 0
  const members = words.flatMap((word, at): readonly MemberRow[] => {
    if (word !== THEN) return [memberOf(word, priority)]
    if (at === 0 || at === words.length - 1 || words[at - 1] === THEN) {
      throw new OperatorError('"then" must be between two members: a/b then c/d.')
    }
    priority++
    return []
  })
  if (members.length < 1 || members.length > bounds.routeMembersMax) {
    throw new OperatorError(`A model name needs 1 to ${bounds.routeMembersMax} members.`)
  }
  const duplicate = members.find(({ model }, at) => members.findIndex(other => other.model === model) < at)
  if (duplicate !== undefined) throw new OperatorError(`${duplicate.model} is listed twice.`)
  return members
}

function memberOf(word: string, priority: number): MemberRow {
  const [, model = '', weight = '1'] = /^(.*?)(?:=(\d+))?$/.exec(word) ?? []
  if (Number(weight) <= bounds.weightMax) return { model, priority, weight: Number(weight) }
  throw new OperatorError(`A weight must be at most ${bounds.weightMax}.`)
}

/** The members in the form in which membersOf parses them. */
export function formatMembers(members: readonly MemberRow[]): string {
  let level = members[0]!.priority
  return members
    .map(({ model, weight, priority }) => {
      const before = priority === level ? '' : `${THEN} `
      level = priority
      return `${before}${model}${weight === 1 ? '' : `=${weight}`}`
    })
    .join(' ')
}

/** A whole number from 0. Undefined: no input. */
export function parseCount(input: unknown, name: string, max: number): number | undefined {
  if (input === undefined) return undefined
  if (/^\d{1,15}$/.test(String(input)) && Number(input) <= max) return Number(input)
  throw new OperatorError(`${name} must be a whole number from 0 to ${max}.`)
}

/** `on` or `off`. Undefined: no input. */
export function parseRuleSwitch(input: unknown, name: string): boolean | undefined {
  if (input === undefined) return undefined
  if (input === 'on' || input === 'off') return input === 'on'
  throw new OperatorError(`${name} must be on or off.`)
}

/** A whole number from 1. Null: none. Undefined: no input. */
export function parseCap(input: unknown, name: string): number | null | undefined {
  if (input === undefined || input === NONE) return input === undefined ? undefined : null
  const cap = /^\d{1,15}$/.test(String(input)) ? Number(input) : 0
  if (cap > 0 && cap <= bounds.channelCapMax) return cap
  throw new OperatorError(`${name} must be a whole number from 1 to ${bounds.channelCapMax}, or none.`)
}

/** Null: none. Undefined: no input. */
export function parseProxy(input: unknown): Secret | null | undefined {
  if (input === undefined || input === NONE) return input === undefined ? undefined : null
  const text = String(input)
  const proxy = new Secret(text)
  try {
    if (text.length > bounds.proxyUrlCharsMax) throw new InvalidAddress('must be shorter')
    Proxy.read(proxy)
    return proxy
  } catch (fault) {
    if (fault instanceof ForbiddenAddress) throw new OperatorError(`--proxy ${fault.message}.`)
    if (!(fault instanceof InvalidAddress)) throw fault
  }
  throw new OperatorError('--proxy must be none, or an address such as http://name:password@proxy.example.com:3128.')
}
