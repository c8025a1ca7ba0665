// The secret of a webhook, which is shown once and stored sealed. It signs each delivery, so that the receiver can
// verify the sender and the time.

import { createHmac, randomBytes } from 'node:crypto'
import type { Brand } from '../base/brand.ts'
import type { Seal } from '../base/secrets/seal.ts'
import { Secret } from '../base/secrets/secret.ts'

export type WebhookSecretText = Brand<string, 'WebhookSecretText'>

export const SIGNATURE_HEADER = 'X-Weir-Signature'

/** Every webhook has a generated secret. People cannot choose it, because an empty or weak one could be guessed. */
export const mintWebhookSecret = (random: (bytes: number) => Uint8Array = randomBytes): WebhookSecretText =>
  `whsec_${Buffer.from(random(32)).toString('base64url')}` as WebhookSecretText

export function signWebhook(secret: Secret, body: string, atMs: number): string {
  const seconds = Math.floor(atMs / 1_000)
  const digest = createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')
  return `t=${seconds},v1=${digest}`
}

const locationOf = (webhookId: number) => ({ table: 'webhook', row: webhookId, column: 'secret' })

/** The sealed secret in base64. */
export const sealWebhookSecret = (seal: Pick<Seal, 'seal'>, webhookId: number, secret: WebhookSecretText): string =>
  seal.seal(locationOf(webhookId), Buffer.from(secret)).toString('base64')

export const openWebhookSecret = (seal: Pick<Seal, 'open'>, webhookId: number, sealed: Uint8Array): Secret =>
  new Secret(seal.open(locationOf(webhookId), sealed).toString())
