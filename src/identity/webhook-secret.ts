// The secret of a webhook, told once and kept sealed; and what is signed with it, so that whoever is told something
// knows that it is from us, and when it was said.

import { createHmac, randomBytes } from 'node:crypto'
import type { Brand } from '../base/brand.ts'
import type { Seal } from '../base/secrets/seal.ts'
import { Secret } from '../base/secrets/secret.ts'

export type WebhookSecretText = Brand<string, 'WebhookSecretText'>

export const SIGNATURE_HEADER = 'X-Weir-Signature'

/** There is no webhook without one, and nobody chooses it: an empty one would be everybody's. */
export const mintWebhookSecret = (random: (bytes: number) => Uint8Array = randomBytes): WebhookSecretText =>
  `whsec_${Buffer.from(random(32)).toString('base64url')}` as WebhookSecretText

export function signatureOf(secret: Secret, body: string, atMs: number): string {
  const seconds = Math.floor(atMs / 1_000)
  const digest = createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')
  return `t=${seconds},v1=${digest}`
}

const placeOf = (webhookId: number) => ({ table: 'webhook', row: webhookId, column: 'secret' })

/** In base64. */
export const sealWebhookSecret = (seal: Pick<Seal, 'close'>, webhookId: number, secret: WebhookSecretText): string =>
  seal.close(placeOf(webhookId), Buffer.from(secret)).toString('base64')

export const openWebhookSecret = (seal: Pick<Seal, 'open'>, webhookId: number, sealed: Uint8Array): Secret =>
  new Secret(seal.open(placeOf(webhookId), sealed).toString())
