// The secret of a webhook, which is shown once and stored sealed. It signs each delivery, so that the receiver can
// verify the sender and the time.

import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { Brand } from '../base/brand.ts'
import type { Seal } from '../base/secrets/seal.ts'
import { Secret } from '../base/secrets/secret.ts'

export type WebhookSecretText = Brand<string, 'WebhookSecretText'>

export const SIGNATURE_HEADER = 'X-Weir-Signature'

/**
 * Every webhook has a generated secret, because people would choose one that can be guessed. Only a configuration file
 * may refer to a secret of its own, so that a receiver can know it before the gateway starts.
 */
export const mintWebhookSecret = (random: (bytes: number) => Uint8Array = randomBytes): WebhookSecretText =>
  `whsec_${Buffer.from(random(32)).toString('base64url')}` as WebhookSecretText

/** At least as long as a generated secret without its prefix. */
export const isStrongWebhookSecret = (text: string): boolean => /^[\x21-\x7e]{32,200}$/.test(text)

/** Shows whether two secrets are the same. They are long and random, so that the mark reveals nothing about them. */
export const markWebhookSecret = (secret: Secret): string =>
  createHash('sha256').update(`weir webhook secret\n${secret.reveal()}`).digest('hex').slice(0, 12)

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
