// Endpoints for the second factor of the signed-in person: its secret is shown once, a code confirms it, and the password
// is needed to remove it.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { digestOpaque } from '../../identity/opaque-token.ts'
import { mintRecoveryCode, mintTotpSecret, openTotp, sealTotp, showTotp, stepOfCode } from '../../identity/totp.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SigningIn } from '../services/sign-in.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, nothing } from './endpoint.ts'
import { done, unknown } from './listing.ts'
import { code, password } from './people-fields.ts'

const exists = (): Refusal =>
  new Refusal('state_unfit', 'exists', { hint: 'You have a second factor already. Remove it first.' })
const wrongCode = (): Refusal =>
  new Refusal('field_invalid', 'code', {
    param: 'code',
    hint: 'The code is wrong or expired. Enter the current code of your authenticator app.',
  })
const RecoveryCodes = z.object({
  recoveryCodes: z.array(z.string()).meta({ description: 'Shown once. Each can be used once instead of a code.' }),
})
const Confirmation = z.strictObject({ currentPassword: password })

function mintCodes() {
  const recoveryCodes = Array.from({ length: bounds.recoveryCodesMax }, () => mintRecoveryCode())
  return { recoveryCodes, digests: recoveryCodes.map(digestOpaque) }
}

export function secondFactorEndpoints(parts: ManagementParts, signing: SigningIn): readonly WebEndpoint[] {
  const { reader, writer, seal, dateMs, site } = parts
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/me/second-factor',
      who: 'person',
      about: 'Create the secret for an authenticator app; it is shown once. It takes effect after its confirmation.',
      body: Confirmation,
      answer: z.object({ secret: z.string(), url: z.string() }),
      status: 201,
      async run({ body, actor, ...visit }) {
        const { id, email } = await signing.confirm(actor.personId, body.currentPassword, visit)
        const secret = mintTotpSecret()
        done(await writer.run('beginTotp', { personId: id, sealed: sealTotp(seal, id, secret) }), { exists, unknown })
        return { body: showTotp(secret, { site: site.current.siteName, email }) }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/me/second-factor/confirm',
      who: 'person',
      about: 'Confirm the second factor with a code. From now on signing in needs a code.',
      body: z.strictObject({ code }),
      answer: RecoveryCodes,
      async run({ body, actor: { personId }, by, ...visit }) {
        const undoGuess = signing.guess(visit)
        const sealed = reader.people.pendingTotp(personId)
        if (sealed === undefined) throw unknown()
        const step = stepOfCode(openTotp(seal, personId, sealed), body.code, dateMs())
        if (step === undefined) throw wrongCode()
        undoGuess()
        const { recoveryCodes, digests: codes } = mintCodes()
        done(await writer.run('confirmTotp', { personId, step, codes, nowMs: dateMs() }, by), { exists, unknown })
        return { body: { recoveryCodes } }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/me/recovery-codes',
      who: 'person',
      about: 'Create new recovery codes; the previous ones stop working.',
      body: Confirmation,
      answer: RecoveryCodes,
      status: 201,
      async run({ body, actor, by, ...visit }) {
        const { id } = await signing.confirm(actor.personId, body.currentPassword, visit)
        const { recoveryCodes, digests: codes } = mintCodes()
        done(await writer.run('renewRecoveryCodes', { personId: id, codes }, by), { unknown })
        return { body: { recoveryCodes } }
      },
    }),
    removeEndpoint(parts, signing),
  ]
}

/** A POST, because some proxies drop the body of a DELETE. */
const removeEndpoint = ({ writer }: ManagementParts, signing: SigningIn): WebEndpoint =>
  endpoint({
    method: 'POST',
    path: '/api/web/me/second-factor/remove',
    who: 'person',
    about: 'Remove the second factor.',
    body: Confirmation,
    answer: nothing,
    status: 204,
    async run({ body, actor, by, ...visit }) {
      const { id } = await signing.confirm(actor.personId, body.currentPassword, visit)
      done(await writer.run('removeTotp', { personId: id }, by), { unknown })
      return {}
    },
  })
