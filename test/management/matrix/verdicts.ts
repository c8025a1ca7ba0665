// Which actor may use which endpoint, derived from the rows of the endpoint table. npm run docs writes it to
// matrix.json, so that a change shows in the diff.

import type { AccountRole, EndpointAccess, SiteRole } from '../../../src/management/actor.ts'
import { accountRoles, isForPeople, siteRoles } from '../../../src/management/actor.ts'
import { describedEndpoints } from '../../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../../src/management/resources/endpoint.ts'
import { isRead } from '../../../src/management/resources/endpoint.ts'

/** Roles of an account are those of the account under test; a stranger manages another account. */
const personNames = [
  ...(['nobody', 'key', 'expired', 'disabled'] as const),
  ...(['stranger', 'viewer', 'developer', 'manager', 'support', 'admin', 'owner'] as const),
] as const

type PersonName = (typeof personNames)[number]

/** Service tokens, and the person with the same rights. Tokens that have ended have the rights of an ended session. */
export const tokenRights = {
  tokenExpired: 'expired',
  tokenRevoked: 'expired',
  tokenRotated: 'expired',
  tokenStranger: 'stranger',
  tokenViewer: 'viewer',
  tokenDeveloper: 'developer',
  tokenManager: 'manager',
  tokenSupport: 'support',
  tokenAdmin: 'admin',
  tokenOwner: 'owner',
} as const satisfies Readonly<Record<string, PersonName>>

export type TokenName = keyof typeof tokenRights
const tokenNames = Object.keys(tokenRights) as TokenName[]

export type ActorName = PersonName | TokenName

export const actorNames: readonly ActorName[] = [...personNames, ...tokenNames]

/** `may`: the request is not refused because of its actor, whatever the answer is. */
export type Verdict = 'may' | '401' | '403' | '404'

export type Row = Readonly<Record<ActorName, Verdict>>

export const nameOf = ({ method, path }: WebEndpoint): string => `${method} ${path}`

const isOf = <T extends string>(names: readonly T[], name: string): name is T =>
  (names as readonly string[]).includes(name)

function expected(who: EndpointAccess, actor: PersonName, endpoint: WebEndpoint): Verdict {
  const { method, params } = endpoint
  if (who === 'nobody') return 'may'
  if (isOf(['nobody', 'key', 'expired', 'disabled'], actor)) return '401'
  if (who === 'person' || who === 'actor') return 'may'
  const role: SiteRole = isOf(siteRoles, actor) ? actor : 'member'
  const isAtLeast = (least: SiteRole): boolean => siteRoles.indexOf(role) >= siteRoles.indexOf(least)
  if ('site' in who) return isAtLeast(who.site) ? 'may' : '403'
  if (isAtLeast(isRead(endpoint) ? 'support' : 'admin')) return 'may'
  // Everybody may read a list; it holds only their own rows.
  if (method === 'GET' && params === undefined) return 'may'
  const rank = isOf(accountRoles, actor) ? accountRoles.indexOf(actor satisfies AccountRole) : -1
  return rank >= accountRoles.indexOf(who.account) ? 'may' : '404'
}

type PeopleRow = Readonly<Record<PersonName, Verdict>>

/** A service token may do what a person with its rights may, except what is for people only. */
function tokenVerdict(who: EndpointAccess, token: TokenName, row: PeopleRow): Verdict {
  const verdict = row[tokenRights[token]]
  return verdict === '401' || !isForPeople(who) ? verdict : '403'
}

type Exceptions = Readonly<Record<string, Partial<PeopleRow> & { readonly because: string }>>

const nobodySignedIn = (verdict: Verdict): Partial<PeopleRow> =>
  Object.fromEntries(
    personNames.filter(actor => !isOf(['nobody', 'key', 'expired', 'disabled'], actor)).map(actor => [actor, verdict]),
  )

/** Endpoints where more than the role decides. Each says why. */
export const exceptions: Exceptions = {
  'POST /api/web/me/second-factor/confirm': {
    ...nobodySignedIn('404'),
    because: 'nobody has begun with one',
  },
  'DELETE /api/web/sessions/{session}': { ...nobodySignedIn('404'), because: 'it is the session of somebody else' },
  'PATCH /api/web/accounts/{account}/members/{user}': {
    viewer: '403',
    developer: '403',
    support: '403',
    because: 'they see the account and do not manage it',
  },
  'DELETE /api/web/accounts/{account}/members/{user}': {
    viewer: '403',
    developer: '403',
    support: '403',
    because: 'only they themselves may leave, others are taken out by managers',
  },
  'GET /api/web/records/{record}/bodies': {
    support: '403',
    because: 'what callers have written is not for support',
  },
  'POST /api/web/invitations': {
    stranger: '404',
    viewer: '403',
    developer: '403',
    support: '403',
    because: 'it is to an account, of which one must be a manager',
  },
  'DELETE /api/web/invitations/{invitation}': {
    stranger: '404',
    viewer: '404',
    developer: '404',
    support: '404',
    because: 'it is of somebody else, to an account that they do not manage',
  },
}

export const expectedRows: ReadonlyMap<string, Row> = new Map(
  describedEndpoints.map(row => {
    const { because: _, ...otherwise } = exceptions[nameOf(row)] ?? { because: '' }
    const verdicts = personNames.map(actor => [actor, expected(row.who, actor, row)] as const)
    const ofPeople = { ...(Object.fromEntries(verdicts) as PeopleRow), ...otherwise }
    const ofTokens = tokenNames.map(token => [token, tokenVerdict(row.who, token, ofPeople)] as const)
    return [nameOf(row), { ...ofPeople, ...(Object.fromEntries(ofTokens) as Record<TokenName, Verdict>) }]
  }),
)

/** The content of matrix.json. */
export function writeRoleMatrix(): string {
  const lines = [...expectedRows].map(([name, row]) => {
    const grouped = Object.entries(Object.groupBy(actorNames, actor => row[actor]))
    const cells = grouped.map(([verdict, actors]) => `"${verdict}": ${JSON.stringify(actors!.join(' '))}`)
    return `  ${JSON.stringify(name)}: { ${cells.join(', ')} }`
  })
  return `{\n${lines.join(',\n')}\n}\n`
}
