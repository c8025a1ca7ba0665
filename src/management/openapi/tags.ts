// The sections of the description, in the order in which they are shown.

/** Tags of the management interface are the first word of the path; other rows name their tag. */
const rows: readonly (readonly [tag: string, description: string])[] = [
  ['Calls', 'Answer conversations, plain or streamed. Every model can be called in each of these dialects.'],
  ['Other calls', 'Embeddings, images, audio, reranking and moderation, forwarded to a provider of the same dialect.'],
  ['Counting', 'Count the tokens of a request without making it. Counting is free.'],
  ['Stored responses', 'Stored responses: show, replay, cancel, delete.'],
  ['Tasks and files', 'Tasks that run at an upstream after their call was answered, and files that are stored there.'],
  ['Models and keys', 'The models that can be called, and the balance and limits of a key.'],
  ['Public', 'Data that everybody may see. Each answer has a strong ETag.'],
  ['Health', 'Health checks and documentation.'],
  ['Sign in', 'Get, renew and end the token of a session (JWT).'],
  ['me', 'The profile of the person who is signed in.'],
  ['sessions', 'Your sessions: list and end them.'],
  ['users', 'People who may sign in.'],
  ['invitations', 'Invitations to the site and to accounts.'],
  ['service-tokens', 'Credentials of programs for the management interface.'],
  ['accounts', 'Accounts with a balance, personal or of a team.'],
  ['members', 'The members of an account and their roles.'],
  ['keys', 'API keys: create, change, rotate, revoke.'],
  ['tiers', 'Tiers of keys: their limits and price multipliers.'],
  ['limits', 'Limits of calls and tokens for keys, accounts, tiers and models.'],
  ['providers', 'Companies and servers that run models.'],
  ['channels', 'A provider and one credential; routing picks a channel for each attempt.'],
  ['models', 'The known models with capabilities, prices and channels.'],
  ['routes', 'Model names: aliases, and groups with weights and fallbacks.'],
  ['prices', 'Prices of models: current, history, and backtests of changes.'],
  ['ledger', 'The trial balance and the audit of the ledger.'],
  ['codes', 'Redemption codes that add money to an account.'],
  ['webhooks', 'URLs that receive events, such as a low balance.'],
  ['records', 'The records of calls.'],
  ['live', 'Calls as they end, as a stream of events.'],
  ['statistics', 'Sums of calls, tokens, money and times.'],
  ['settings', 'The settings of the site.'],
  ['gateway', 'The state of the gateway itself, and what is wrong with it.'],
  ['audit-log', 'Who changed what, when and from where; hash-chained.'],
]

export interface Tag {
  readonly name: string
  readonly description: string
}

/** Returns `Audit log` for `audit-log`. */
export const tagName = (tag: string): string => {
  const words = tag.replaceAll('-', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The tags that are used, those of the table first. */
export function tagsOf(used: ReadonlySet<string>): readonly Tag[] {
  const known = rows.filter(([tag]) => used.has(tag))
  const others = [...used].filter(tag => !rows.some(([known]) => known === tag)).sort()
  return [
    ...known.map(([tag, description]) => ({ name: tagName(tag), description })),
    ...others.map(tag => ({ name: tagName(tag), description: `The endpoints under /api/web/${tag}.` })),
  ]
}
