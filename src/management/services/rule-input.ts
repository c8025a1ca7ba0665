// Reads what an operator wrote of rules: amounts, members, patterns, tags, proxies. What cannot be read is told in a
// sentence, and never in the words that were written where these may be a secret.

import { bounds } from '../../base/bounds.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { BadAddress, NeverReached } from '../../http/address/operator-address.ts'
import { Proxy } from '../../http/client/proxy.ts'
import type { LimitRow, LimitScope, MemberRow } from '../../store/rules/rules.ts'
import { limitScopes } from '../../store/rules/rules.ts'
import { isTag } from '../../upstreams/provider.ts'
import { OperatorError } from '../operator-error.ts'

const VISIBLE = /^[\x21-\x7e]+$/
/** Stands between members that are tried first and those after them. */
const THEN = 'then'
const NONE = 'none'

/** `100/minute`, or of concurrency `8`. Whether such a limit makes sense is another's to say. */
export function amountOf(given: unknown): Pick<LimitRow, 'amount' | 'span'> {
  const [, amount, span = null] = /^(-?[\d.]+)(?:\/(minute|day))?$/.exec(String(given ?? '')) ?? []
  if (amount !== undefined) return { amount: Number(amount), span: span as LimitRow['span'] }
  throw new OperatorError('A limit must be a whole number with its window, such as 100/minute or 5000/day.')
}

/** In the order in which they are written down. */
export function scopesOf(given: unknown): readonly LimitScope[] {
  const wanted = given === undefined ? [] : listOf(given)
  const scopes = limitScopes.filter(scope => wanted.includes(scope))
  if (scopes.length === wanted.length) return scopes
  throw new OperatorError('--per must be key, account or model, each once, with commas between.')
}

/** As callers name models, with any number of `*`. */
export function patternOf(given: unknown, name: string): string {
  const text = String(given)
  const most = bounds.modelNameCharsMax
  if (VISIBLE.test(text) && text.length <= most && !text.includes(',')) return text
  throw new OperatorError(`${name} must have 1 to ${most} visible characters, in which * stands for any others.`)
}

/** Null for none, undefined where nothing was given. */
export function patternsOf(given: unknown, name: string): readonly string[] | null | undefined {
  if (given === undefined) return undefined
  const patterns = listOf(given).map(pattern => patternOf(pattern, `Each name of ${name}`))
  if (patterns.length > bounds.keyPatternsMax) {
    throw new OperatorError(`${name} may have ${bounds.keyPatternsMax} names at most.`)
  }
  return patterns.length === 0 ? null : patterns
}

export function tagsOf(given: unknown, name: string): readonly string[] | undefined {
  if (given === undefined) return undefined
  const tags = given === NONE ? [] : [...new Set(listOf(given))]
  if (tags.every(isTag) && tags.length <= bounds.tagsMax) return tags
  throw new OperatorError(
    `${name} must be words of lower-case letters, digits and dashes, with commas between, ${bounds.tagsMax} at most.`,
  )
}

export function listOf(given: unknown): readonly string[] {
  return String(given)
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
}

/** It must be possible to write a name as a member, too, and in a list. What else it must be, the router knows. */
export function routeNameOf(given: unknown): string {
  const text = String(given ?? '')
  if (!text.includes(',') && text !== THEN && !/=\d+$/.test(text)) return text
  throw new OperatorError('A name for models has no comma, no =number at its end, and is not "then".')
}

/** `openai/gpt-4o=3 azure/gpt-4o then anthropic/claude-x`: weights, and who comes after whom. */
export function membersOf(given: unknown): readonly MemberRow[] {
  const words = Array.isArray(given) ? given.map(String) : []
  let priority = 0
  const members = words.flatMap((word, at): readonly MemberRow[] => {
    if (word !== THEN) return [memberOf(word, priority)]
    if (at === 0 || at === words.length - 1 || words[at - 1] === THEN) {
      throw new OperatorError('"then" must stand between members: a/b then c/d.')
    }
    priority++
    return []
  })
  if (members.length < 1 || members.length > bounds.routeMembersMax) {
    throw new OperatorError(`Name what it stands for: 1 to ${bounds.routeMembersMax} members.`)
  }
  const twice = members.find(({ model }, at) => members.findIndex(other => other.model === model) < at)
  if (twice !== undefined) throw new OperatorError(`${twice.model} stands there twice.`)
  return members
}

function memberOf(word: string, priority: number): MemberRow {
  const [, model = '', weight = '1'] = /^(.*?)(?:=(\d+))?$/.exec(word) ?? []
  if (Number(weight) <= bounds.weightMax) return { model, priority, weight: Number(weight) }
  throw new OperatorError(`A weight may be ${bounds.weightMax} at most.`)
}

/** As it would be written. */
export function memberText(members: readonly MemberRow[]): string {
  let level = members[0]!.priority
  return members
    .map(({ model, weight, priority }) => {
      const before = priority === level ? '' : `${THEN} `
      level = priority
      return `${before}${model}${weight === 1 ? '' : `=${weight}`}`
    })
    .join(' ')
}

/** From 0 on; undefined where nothing was given. */
export function countOf(given: unknown, name: string, max: number): number | undefined {
  if (given === undefined) return undefined
  if (/^\d{1,15}$/.test(String(given)) && Number(given) <= max) return Number(given)
  throw new OperatorError(`${name} must be a whole number from 0 to ${max}.`)
}

/** `on` or `off`; undefined where nothing was given. */
export function switchOf(given: unknown, name: string): boolean | undefined {
  if (given === undefined) return undefined
  if (given === 'on' || given === 'off') return given === 'on'
  throw new OperatorError(`${name} must be on or off.`)
}

/** From 1 on; null for none, undefined where nothing was given. */
export function capOf(given: unknown, name: string): number | null | undefined {
  if (given === undefined || given === NONE) return given === undefined ? undefined : null
  const cap = /^\d{1,15}$/.test(String(given)) ? Number(given) : 0
  if (cap > 0 && cap <= bounds.channelCapMax) return cap
  throw new OperatorError(`${name} must be a whole number from 1 to ${bounds.channelCapMax}, or none.`)
}

/** Null for none, undefined where nothing was given. */
export function proxyOf(given: unknown): Secret | null | undefined {
  if (given === undefined || given === NONE) return given === undefined ? undefined : null
  const text = String(given)
  const proxy = new Secret(text)
  try {
    if (text.length > bounds.proxyUrlCharsMax) throw new BadAddress('must be shorter')
    Proxy.read(proxy)
    return proxy
  } catch (fault) {
    if (fault instanceof NeverReached) throw new OperatorError(`--proxy ${fault.message}.`)
    if (!(fault instanceof BadAddress)) throw fault
  }
  throw new OperatorError('--proxy must be none, or an address such as http://name:password@proxy.example.com:3128.')
}
