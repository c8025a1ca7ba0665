// Commands that configure limits and model names.

import { limitScopes, policyNames } from '../../store/rules/rules.ts'
import type { CommandFields } from '../connect.ts'
import { findAccount, findKey, optionally, splitList, text } from '../input.ts'
import { fieldLines, rowLines } from '../print.ts'
import { RequestProblem, UsageProblem } from '../problem.ts'
import type { Send } from '../send.ts'
import { getAll } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

/** Separates members that are tried first from those that are tried after them. */
const THEN = 'then'

interface Member {
  readonly model: string
  readonly priority: number
  readonly weight: number
}

export const ruleRows: Readonly<Record<string, CliCommand>> = {
  'limits list': defineCommand({
    usage: 'limits list',
    description: 'list the limits on calls',
    ask: (_, send) => getAll(send, '/api/web/limits'),
    print: ({ data }) => rowLines((data as CommandFields[]).map(limitRow), NO_LIMITS),
  }),
  'limits set': defineCommand({
    unknown: 'There is no such key or account.',
    usage:
      'limits set <requests|tokens> <n>/<minute|day>, or concurrency <n> [--per key,account,model] [--key …] ' +
      "[--account …] [--tier …] [--model 'a/*']",
    description:
      'limit calls; --key, --account, --tier and --model say which calls, --per says that each key, account or ' +
      'model has a limit of its own; setting the same limit again changes its amount',
    positionals: ['resource', 'amount'],
    options: ['per', 'key', 'account', 'tier', 'model'],
    values: { resource: ['requests', 'tokens', 'concurrency'], per: limitScopes },
    ask: setLimit,
    print: answer => fieldLines(limitRow(answer)),
  }),
  'limits remove': defineCommand({
    unknown: 'Unknown limit. See: weir limits list',
    usage: 'limits remove <id>',
    description: 'remove a limit',
    positionals: ['id'],
    ask: ({ id }, send) => send('DELETE', `/api/web/limits/${text(id)}`),
    print: () => ['The limit is removed.'],
  }),
  'routes list': defineCommand({
    usage: 'routes list',
    description: 'list the model names that you defined',
    ask: (_, send) => getAll(send, '/api/web/routes'),
    print: ({ data }) => rowLines((data as CommandFields[]).map(routeRow), 'no model names defined'),
  }),
  'routes set': defineCommand({
    unknown: 'A model name must have 1 to 256 visible ASCII characters.',
    usage: 'routes set <name> <provider/model or name>[=weight] … [then …] [--policy balanced]',
    description:
      'define a name for a model or a group of models; models after "then" are used only if none before it can ' +
      'serve the call; ' +
      'policies: balanced, weighted, least_busy, fastest, cheapest',
    positionals: ['name', 'members…'],
    options: ['policy'],
    values: { policy: policyNames },
    async ask({ name, members, policy }, send) {
      const path = `/api/web/routes/${text(name)}`
      const wanted = policy ?? (await policyOf(send, path))
      return await send('PUT', path, { policy: wanted, members: parseMembers(members) })
    },
    print: answer => fieldLines(routeRow(answer)),
  }),
  'routes remove': defineCommand({
    unknown: 'Unknown model name. See: weir routes list',
    usage: 'routes remove <name>',
    description: 'remove a model name',
    positionals: ['name'],
    ask: ({ name }, send) => send('DELETE', `/api/web/routes/${text(name)}`),
    print: () => ['The model name is removed.'],
  }),
}

const NO_LIMITS = 'no limits except the calls per minute of keys and tiers'

/** Creates a limit. If there is the same limit already, its amount is changed. */
async function setLimit(input: CommandFields, send: Send): Promise<CommandFields> {
  const [, count, span = null] = /^(-?[\d.]+)(?:\/(minute|day))?$/.exec(text(input.amount)) ?? []
  if (count === undefined) {
    throw new UsageProblem(
      input.resource === 'concurrency'
        ? 'A limit of concurrency must be a whole number, such as 20.'
        : 'A limit must be a whole number with its period, such as 100/minute or 5000/day.',
    )
  }
  const limit = {
    resource: input.resource,
    span,
    key: (await optionally(input.key, given => findKey(send, given))) ?? null,
    account: (await optionally(input.account, given => findAccount(send, given))) ?? null,
    tier: input.tier ?? null,
    model: input.model ?? null,
    per: splitList(input.per),
  }
  try {
    return await send('POST', '/api/web/limits', { ...limit, amount: Number(count) })
  } catch (fault) {
    if (!(fault instanceof RequestProblem) || fault.code !== 'name_taken') throw fault
    const same = (await getAll(send, '/api/web/limits')).data.find(other => isSameLimit(other, limit))
    if (same === undefined) throw fault
    return await send('PATCH', `/api/web/limits/${text(same.id)}`, { amount: Number(count) })
  }
}

const isSameLimit = (one: CommandFields, other: CommandFields): boolean =>
  Object.entries(other).every(([name, value]) =>
    Array.isArray(value) ? value.toSorted().join() === (one[name] as string[]).toSorted().join() : one[name] === value,
  )

function limitRow({ id, resource, span, amount, key, account, tier, model, per }: CommandFields): CommandFields {
  const calls = [
    ...(key === null ? [] : [key]),
    ...(account === null ? [] : [account]),
    ...(tier === null ? [] : [`tier ${text(tier)}`]),
    ...(model === null ? [] : [`model ${text(model)}`]),
  ]
  const scopes = per as readonly string[]
  return {
    id,
    limit: `${text(amount)} ${text(resource)}${span === null ? '' : `/${text(span)}`}`,
    for: calls.length === 0 ? 'all calls' : calls.join(', '),
    per: scopes.length === 0 ? 'all of them' : scopes.join(', '),
  }
}

/** The policy of a model name that exists already; undefined: a new one gets the default. */
async function policyOf(send: Send, path: string): Promise<unknown> {
  try {
    return (await send.get(path)).policy
  } catch (fault) {
    if (fault instanceof RequestProblem && fault.code === 'resource_unknown') return undefined
    throw fault
  }
}

/** Parses `openai/gpt-4o=3 azure/gpt-4o then anthropic/claude-x`: members with weights and priorities. */
function parseMembers(given: unknown): readonly Member[] {
  const words = given as readonly string[]
  let priority = 0
  return words.flatMap((word, at): readonly Member[] => {
    if (word !== THEN) {
      const [, model = '', weight = '1'] = /^(.*?)(?:=(\d+))?$/.exec(word) ?? []
      return [{ model, priority, weight: Number(weight) }]
    }
    if (at === 0 || at === words.length - 1 || words[at - 1] === THEN) {
      throw new UsageProblem('"then" must be between two members: a/b then c/d.')
    }
    priority++
    return []
  })
}

/** A model name with its members in the form in which they are typed. */
function routeRow({ name, policy, members }: CommandFields): CommandFields {
  const all = members as readonly Member[]
  let level = all[0]?.priority
  const words = all.map(({ model, weight, priority }) => {
    const before = priority === level ? '' : `${THEN} `
    level = priority
    return `${before}${model}${weight === 1 ? '' : `=${weight}`}`
  })
  return { name, policy, members: words.join(' ') }
}
