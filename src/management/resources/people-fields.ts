// Schemas of fields about people that several resources use.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { parseEmail } from '../../identity/password-rules.ts'
import { accountRoles, siteRoles } from '../actor.ts'
import { must } from '../web/issue-text.ts'

export const siteRole = z.enum(siteRoles)
export const accountRole = z.enum(accountRoles)

/** Converted to lower case. */
export const email = z
  .string()
  .max(bounds.emailCharsMax)
  .refine(text => parseEmail(text) !== undefined, must('must_be_email'))
  .transform(text => parseEmail(text)!)

export const personName = z
  .string()
  .trim()
  .min(1)
  .max(bounds.personNameCharsMax)
  .refine(text => !/\p{Cc}/u.test(text), must('must_have_no_controls'))

/** Only the length is checked here; weak passwords have an error of their own. */
export const password = z
  .string()
  .min(1)
  .max(bounds.passwordCharsMax * 2)
export const code = z
  .string()
  .max(40)
  .meta({ description: 'The six digits of an authenticator app, or a recovery code' })
export const token = z.string().max(100)

export const SignedIn = z
  .object({
    accessToken: z.string().meta({ description: 'For "Authorization: Bearer …" on /api/web/*' }),
    expiresInSeconds: z.number(),
    user: z.object({ id: z.string(), email: z.string(), name: z.string(), role: siteRole }),
  })
  .meta({ id: 'SignedIn' })
