// Endpoints for the set-up of a new gateway: create its owner.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { ManagementParts } from '../management-parts.ts'
import { isSetUpToken, setUpOwner } from '../services/set-up.ts'
import type { SignInService } from '../services/sign-in.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint } from './endpoint.ts'
import { email, password, personName, SignedIn, token } from './people-fields.ts'

const isDone = (): Refusal => new Refusal('state_unfit', 'set up', { hint: hintOf('owner_exists') })
const refused = (): Refusal => new Refusal('setup_refused', 'unknown, used or too old')

export function setUpEndpoints(parts: ManagementParts, signing: SignInService): readonly WebEndpoint[] {
  const { reader } = parts
  return [
    endpoint({
      method: 'GET',
      path: '/api/auth/setup',
      who: 'nobody',
      summary: 'Show whether the gateway still needs an owner.',
      answer: z.object({ needed: z.boolean() }),
      run: async () => ({ body: { needed: !(await reader.people.hasOwner()) } }),
    }),
    endpoint({
      method: 'POST',
      path: '/api/auth/setup',
      who: 'nobody',
      summary: 'Create the owner with the one-time token that the start of the gateway printed.',
      body: z.strictObject({ token, name: personName, email, password }),
      answer: SignedIn,
      status: 201,
      async run({ body, by, ...visit }) {
        if (await reader.people.hasOwner()) throw isDone()
        if (!(await isSetUpToken(parts, body.token))) {
          await signing.countWrongToken(visit)
          throw refused()
        }
        const owner = { email: body.email, name: body.name, password: await signing.hash(body.password, body.email) }
        const { insert, refresh } = signing.sessions.draft(visit)
        const { done, personId } = await setUpOwner(parts, owner, { token: body.token, session: insert, by })
        if (done === 'owner_exists') throw isDone()
        if (done === 'email_taken') throw new Refusal('name_taken', 'email', { param: 'email' })
        if (done !== 'set_up') throw refused()
        return signing.sessions.begun({ personId, sessionId: insert.id, ver: 1 }, refresh, visit)
      },
    }),
  ]
}
