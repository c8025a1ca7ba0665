// Whoever is signed in, about themselves.

import * as z from 'zod'
import { siteRoles } from '../actor.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint } from './endpoint.ts'

export const meEndpoints: readonly WebEndpoint[] = [
  endpoint({
    method: 'GET',
    path: '/api/web/me',
    who: 'person',
    about: 'Show who you are.',
    answer: z.object({ role: z.enum(siteRoles) }),
    run: async ({ actor: { role } }) => ({ body: { role } }),
  }),
]
