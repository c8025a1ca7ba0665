// Endpoints for the person who is signed in.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { timeText } from '../../base/time.ts'
import type { Actor } from '../actor.ts'
import { accountRoles, askerOf, isAtLeast } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SignInService } from '../services/sign-in.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, time, version } from './endpoint.ts'
import { requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { accountRole, email, password, personName, SignedIn, siteRole } from './people-fields.ts'
import { language, zone } from './site-look.ts'

const themes = ['system', 'light', 'dark'] as const
const densities = ['dense', 'comfortable'] as const
const preferenceFields = { language, zone, theme: z.enum(themes), density: z.enum(densities) }

const Preferences = z
  .object({
    language: language.nullable().meta({ description: 'Null: that of the site' }),
    zone: zone
      .nullable()
      .meta({ description: 'The time zone (IANA) of times; null: that of the site, else of the browser' }),
    theme: preferenceFields.theme.nullable(),
    density: preferenceFields.density.nullable(),
  })
  .meta({ id: 'Preferences' })

/** Missing fields stay; null removes a preference. */
const PreferenceChanges = z.strictObject(
  Object.fromEntries(Object.entries(preferenceFields).map(([name, field]) => [name, field.nullable().optional()])) as {
    [Name in keyof typeof preferenceFields]: z.ZodOptional<z.ZodNullable<(typeof preferenceFields)[Name]>>
  },
)

const noPreferences: z.infer<typeof Preferences> = { language: null, zone: null, theme: null, density: null }

export const Me = z
  .object({
    /** Null: the operator at the command line. */
    id: z.string().nullable(),
    email: z.string().nullable(),
    name: z.string(),
    role: siteRole,
    session: z.string(),
    secondFactor: z.boolean(),
    created: time.nullable(),
    accounts: z.array(z.object({ account: z.string(), name: z.string(), role: accountRole })),
    preferences: Preferences,
    version,
  })
  .meta({ id: 'Me' })

const taken = (): Refusal => new Refusal('name_taken', 'email', { param: 'email' })
const notByMembers = (): Refusal =>
  new Refusal('role_too_low', 'email', { param: 'email', hint: hintOf('email_by_admin') })
const passwordNeeded = { param: 'currentPassword', hint: hintOf('password_needed') }

/** The profile of a signed-in person; undefined if the person does not exist. */
export async function showMe(
  { queryWorker }: Pick<ManagementParts, 'queryWorker'>,
  { personId, role, sessionId }: Pick<Actor, 'personId' | 'role' | 'sessionId'>,
) {
  const own = { session: textId('ses', sessionId), role }
  if (personId === 0) {
    const operator = { id: null, email: null, name: 'operator', secondFactor: false, created: null, accounts: [] }
    return { body: { ...operator, ...own, preferences: noPreferences, version: 0 } }
  }
  const row = await queryWorker.query('me', { id: personId }, askerOf({ personId, role }))
  if (row === null) return undefined
  const { createdMs, accounts, preferences: stored, ...person } = row
  const preferences = { ...noPreferences, ...(JSON.parse(stored ?? '{}') as Partial<typeof noPreferences>) }
  const members = accounts.map(({ accountId, name, rank }) => ({
    account: textId('acc', accountId),
    name,
    role: accountRoles[rank - 1]!,
  }))
  const shown = { id: textId('usr', personId), created: timeText(createdMs), accounts: members, preferences }
  return { body: { ...person, ...own, ...shown }, version: row.version }
}

export function meEndpoints(parts: ManagementParts, signing: SignInService): readonly WebEndpoint[] {
  const { writer, dateMs } = parts
  const show = async (actor: Actor) => requireFound(await showMe(parts, actor))
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/me',
      who: 'person',
      summary: 'Show your own profile and accounts.',
      answer: Me,
      run: ({ actor }) => show(actor),
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/me',
      who: 'person',
      summary:
        'Change your name or your preferences, or your email address with your current password. Members must ask an ' +
        'admin for the latter.',
      body: z.strictObject({
        name: personName.optional(),
        email: email.optional(),
        currentPassword: password.optional(),
        preferences: PreferenceChanges.optional(),
      }),
      answer: Me,
      async run({ actor, body: { currentPassword, ...body }, by, ...visit }) {
        if (body.email !== undefined) {
          // Checked first, so that the answer does not depend on whether another person has the address.
          if (!isAtLeast(actor.role, 'support')) throw notByMembers()
          if (currentPassword === undefined) throw new Refusal('password_wrong', 'none', passwordNeeded)
          await signing.confirm(actor.personId, currentPassword, visit)
        }
        const input = { id: actor.personId, ...body }
        requireDone(await writer.run('setProfile', input, by), { unknown: resourceUnknown, email_taken: taken })
        return show(actor)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/me/password',
      who: 'person',
      summary:
        'Choose a new password. All your other sessions end. This one goes on with the access token of the answer: the ' +
        'tokens before are no longer valid.',
      body: z.strictObject({ currentPassword: password, password }),
      answer: SignedIn,
      async run({ actor, body, by, ...visit }) {
        const person = await signing.confirm(actor.personId, body.currentPassword, visit)
        const hash = await signing.hash(body.password, person.email)
        const input = { id: person.id, password: hash, sessionId: actor.sessionId, nowMs: dateMs() }
        const result = requireDone(await writer.run('setPassword', input, by), { unknown: resourceUnknown })
        const ver = 'ver' in result ? result.ver : person.ver
        return { body: await signing.sessions.tokenFor({ personId: person.id, sessionId: actor.sessionId, ver }) }
      },
    }),
  ]
}
