// The sections of the description, in the order in which they are shown.

/** Of the management interface by the first word of a path; of everything else by the name that its rows give. */
const rows: readonly (readonly [tag: string, description: string])[] = [
  ['Calls', 'A conversation in, an answer out, plain or streamed. Any model can be called in any of these dialects.'],
  ['Other calls', 'Embeddings, images, sound, reranking and moderation, passed on to a provider of the same dialect.'],
  ['Counting', 'How long a request is, without making it. It costs nothing.'],
  ['Stored responses', 'Responses that were kept: looked at, heard again, cancelled, forgotten.'],
  ['Tasks and files', 'What an upstream works on after its call was answered, and files that lie there.'],
  ['Models and keys', 'Which models there are, and what a key may still use.'],
  ['Public', 'What anybody may know of this site. Each answer has a strong ETag.'],
  ['Health', 'For whoever watches the gateway, and for whoever reads this.'],
  ['Sign in', 'How a management token (JWT) is obtained, renewed and given back.'],
  ['me', 'Whoever is signed in, about themselves.'],
  ['sessions', 'Where somebody is signed in, and how that ends.'],
  ['users', 'People who may sign in.'],
  ['invitations', 'People who were asked to join.'],
  ['accounts', 'What holds a balance, personal or of a team.'],
  ['members', 'Who looks after an account, in which role.'],
  ['keys', 'API keys: shown once, limited, rotated, revoked.'],
  ['tiers', 'What the keys of a kind may do and pay.'],
  ['limits', 'Limits of calls and tokens for keys, accounts, tiers and models.'],
  ['providers', 'Companies and servers that answer calls.'],
  ['channels', 'A provider and one credential; what routing picks.'],
  ['models', 'What can be called, and what is known of it.'],
  ['routes', 'Names for models: aliases, and groups with weights and fallbacks.'],
  ['prices', 'What models cost: now, before, and what a change would come to.'],
  ['ledger', 'Statements, and money that is added, given, corrected and returned.'],
  ['codes', 'Codes that are worth money to whoever redeems them.'],
  ['webhooks', 'Who is told when a balance runs low.'],
  ['records', 'What was written down of each call.'],
  ['statistics', 'Calls, tokens, money and times, from rollups.'],
  ['settings', 'How this site is set.'],
  ['audit-log', 'Who changed what, when and from where; hash-chained.'],
]

export interface Tag {
  readonly name: string
  readonly description: string
}

/** `Audit log`, for `audit-log`. */
export const tagName = (tag: string): string => {
  const words = tag.replaceAll('-', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Those that are used, known ones first. */
export function tagsOf(used: ReadonlySet<string>): readonly Tag[] {
  const known = rows.filter(([tag]) => used.has(tag))
  const others = [...used].filter(tag => !rows.some(([own]) => own === tag)).sort()
  return [
    ...known.map(([tag, description]) => ({ name: tagName(tag), description })),
    ...others.map(tag => ({ name: tagName(tag), description: `What is under /api/web/${tag}.` })),
  ]
}
