// Endpoints for the second factor of the signed-in person: its secret is shown once, a code confirms it, and the password
// is needed to remove it.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { digestOpaqueToken } from '../../identity/opaque-token.ts'
import { mintRecoveryCode, mintTotpSecret, openTotp, sealTotp, showTotp, totpStepOfCode } from '../../identity/totp.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SignInService } from '../services/sign-in.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, noContent } from './endpoint.ts'
import { requireDone, resourceUnknown } from './list-queries.ts'
import { code, password } from './people-fields.ts'

const exists = (): Refusal => new Refusal('state_unfit', 'exists', { hint: hintOf('factor_exists') })
const wrongCode = (): Refusal =>
  new Refusal('field_invalid', 'code', {
    param: 'code',
    hint: hintOf('factor_code_wrong'),
  })
const RecoveryCodes = z.object({
  recoveryCodes: z.array(z.string()).meta({ description: 'Shown once. Each can be used once instead of a code.' }),
})
const Confirmation = z.strictObject({ currentPassword: password })

function mintCodes() {
  const recoveryCodes = Array.from({ length: bounds.recoveryCodesMax }, () => mintRecoveryCode())
  return { recoveryCodes, digests: recoveryCodes.map(digestOpaqueToken) }
}

export function secondFactorEndpoints(parts: ManagementParts, signing: SignInService): readonly WebEndpoint[] {
  const { reader, writer, seal, dateMs, site } = parts
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/me/second-factor',
      who: 'person',
      summary: 'Create the secret for an authenticator app; it is shown once. It takes effect after its confirmation.',
      body: Confirmation,
      answer: z.object({ secret: z.string(), url: z.string() }),
      status: 201,
      async run({ body, actor, ...visit }) {
        const { id, email } = await signing.confirm(actor.personId, body.currentPassword, visit)
        const secret = mintTotpSecret()
        requireDone(await writer.run('beginTotp', { personId: id, sealed: sealTotp(seal, id, secret) }), {
          exists,
          unknown: resourceUnknown,
        })
        return { body: showTotp(secret, { site: site.current.siteName, email }) }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/me/second-factor/confirm',
      who: 'person',
      summary: 'Confirm the second factor with a code. From now on signing in needs a code.',
      body: z.strictObject({ code }),
      answer: RecoveryCodes,
      async run({ body, actor: { personId }, by }) {
        const undoGuess = await signing.guessCode(personId)
        const sealed = await reader.people.pendingTotp(personId)
        if (sealed === undefined) throw resourceUnknown()
        const step = totpStepOfCode(openTotp(seal, personId, sealed), body.code, dateMs())
        if (step === undefined) throw wrongCode()
        undoGuess()
        const { recoveryCodes, digests: codes } = mintCodes()
        requireDone(await writer.run('confirmTotp', { personId, step, codes, nowMs: dateMs() }, by), {
          exists,
          unknown: resourceUnknown,
        })
        return { body: { recoveryCodes } }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/me/recovery-codes',
      who: 'person',
      summary: 'Create new recovery codes; the previous ones stop working.',
      body: Confirmation,
      answer: RecoveryCodes,
      status: 201,
      async run({ body, actor, by, ...visit }) {
        const { id } = await signing.confirm(actor.personId, body.currentPassword, visit)
        const { recoveryCodes, digests: codes } = mintCodes()
        requireDone(await writer.run('renewRecoveryCodes', { personId: id, codes }, by), { unknown: resourceUnknown })
        return { body: { recoveryCodes } }
      },
    }),
    removeEndpoint(parts, signing),
  ]
}

/** A POST, because some proxies drop the body of a DELETE. */
const removeEndpoint = ({ writer }: ManagementParts, signing: SignInService): WebEndpoint =>
  endpoint({
    method: 'POST',
    path: '/api/web/me/second-factor/remove',
    who: 'person',
    summary: 'Remove the second factor.',
    body: Confirmation,
    answer: noContent,
    status: 204,
    async run({ body, actor, by, ...visit }) {
      const { id } = await signing.confirm(actor.personId, body.currentPassword, visit)
      requireDone(await writer.run('removeTotp', { personId: id }, by), { unknown: resourceUnknown })
      return {}
    },
  })
