// Who may ask what, as the rows of the table say it: for everybody, what is expected. npm run docs writes it down in
// matrix.json, so that whoever changes it sees what they have changed.

import type { AccountRole, EndpointAccess, SiteRole } from '../../../src/management/actor.ts'
import { accountRoles, isForPeople, siteRoles } from '../../../src/management/actor.ts'
import { describedEndpoints } from '../../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../../src/management/resources/endpoint.ts'

/** Those of an account are of the account that everything is tried on; a stranger manages another one. */
const people = [
  ...(['nobody', 'key', 'expired', 'disabled'] as const),
  ...(['stranger', 'viewer', 'developer', 'manager', 'support', 'admin', 'owner'] as const),
] as const

type Someone = (typeof people)[number]

/** Service tokens, and the person who has the same rights; those that have ended have the rights of an ended session. */
export const tokens = {
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
} as const satisfies Readonly<Record<string, Someone>>

export type TokenName = keyof typeof tokens
const tokenNames = Object.keys(tokens) as TokenName[]

export type Somebody = Someone | TokenName

export const everybody: readonly Somebody[] = [...people, ...tokenNames]

/** `may`: whatever is answered, it is not refused for who asks. */
export type Verdict = 'may' | '401' | '403' | '404'

export type Row = Readonly<Record<Somebody, Verdict>>

export const nameOf = ({ method, path }: WebEndpoint): string => `${method} ${path}`

const isOf = <T extends string>(names: readonly T[], name: string): name is T =>
  (names as readonly string[]).includes(name)

function expected(who: EndpointAccess, somebody: Someone, { method, params }: WebEndpoint): Verdict {
  if (who === 'nobody') return 'may'
  if (isOf(['nobody', 'key', 'expired', 'disabled'], somebody)) return '401'
  if (who === 'person' || who === 'actor') return 'may'
  const role: SiteRole = isOf(siteRoles, somebody) ? somebody : 'member'
  const isAtLeast = (least: SiteRole): boolean => siteRoles.indexOf(role) >= siteRoles.indexOf(least)
  if ('site' in who) return isAtLeast(who.site) ? 'may' : '403'
  if (isAtLeast(method === 'GET' ? 'support' : 'admin')) return 'may'
  // A list is everybody's, with what is theirs in it.
  if (method === 'GET' && params === undefined) return 'may'
  const rank = isOf(accountRoles, somebody) ? accountRoles.indexOf(somebody satisfies AccountRole) : -1
  return rank >= accountRoles.indexOf(who.account) ? 'may' : '404'
}

type PeopleRow = Readonly<Record<Someone, Verdict>>

/** A service token may do what a person with its rights may, except what is for people only. */
function tokenVerdict(who: EndpointAccess, token: TokenName, row: PeopleRow): Verdict {
  const verdict = row[tokens[token]]
  return verdict === '401' || !isForPeople(who) ? verdict : '403'
}

type Exceptions = Readonly<Record<string, Partial<PeopleRow> & { readonly because: string }>>

const nobodySignedIn = (verdict: Verdict): Partial<PeopleRow> =>
  Object.fromEntries(
    people.filter(one => !isOf(['nobody', 'key', 'expired', 'disabled'], one)).map(one => [one, verdict]),
  )

/** Where who may ask is not all that decides. Each says why. */
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
    const verdicts = people.map(somebody => [somebody, expected(row.who, somebody, row)] as const)
    const ofPeople = { ...(Object.fromEntries(verdicts) as PeopleRow), ...otherwise }
    const ofTokens = tokenNames.map(token => [token, tokenVerdict(row.who, token, ofPeople)] as const)
    return [nameOf(row), { ...ofPeople, ...(Object.fromEntries(ofTokens) as Record<TokenName, Verdict>) }]
  }),
)

/** As it is kept in matrix.json. */
export function writeRoleMatrix(): string {
  const lines = [...expectedRows].map(([name, row]) => {
    const grouped = Object.entries(Object.groupBy(everybody, somebody => row[somebody]))
    const cells = grouped.map(([verdict, own]) => `"${verdict}": ${JSON.stringify(own!.join(' '))}`)
    return `  ${JSON.stringify(name)}: { ${cells.join(', ')} }`
  })
  return `{\n${lines.join(',\n')}\n}\n`
}
