// Creates a webhook: checks its URL, creates its secret and encrypts it.

import type { WebhookSecretText } from '../../identity/webhook-secret.ts'
import { mintWebhookSecret, sealWebhookSecret } from '../../identity/webhook-secret.ts'
import type { AuditActor } from '../../store/audit-log/audited-operations.ts'
import type { OperationResult } from '../../store/engine/operations.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { ManagementParts } from '../management-parts.ts'

export interface WebhookInput {
  /** Null: a webhook of the site. */
  readonly accountId: number | null
  readonly scope: Scope | null
  readonly url: string
  readonly events: readonly string[]
}

/** The URL cannot be used for a webhook; the message says why. */
export class InvalidWebhookUrl extends Error {}

export interface CreatedWebhook {
  readonly id: number
  /** Shown once. */
  readonly secret: WebhookSecretText
  readonly result: OperationResult<'createWebhook'>
}

/** The origin of the URL, which may be shown to everybody: path and query may contain secrets. */
export function webhookOrigin({ webhooks }: Pick<ManagementParts, 'webhooks'>, url: string): string {
  const problem = webhooks.outside.checkUrl(url)
  if (problem !== undefined) throw new InvalidWebhookUrl(problem)
  return new URL(url).origin
}

export async function insertWebhook(
  parts: ManagementParts,
  wanted: WebhookInput,
  by: AuditActor,
): Promise<CreatedWebhook> {
  const { accountId, scope, url, events } = wanted
  const [id, secret] = [parts.mintId(), mintWebhookSecret()]
  const sealed = sealWebhookSecret(parts.seal, id, secret)
  const fields = { url, origin: webhookOrigin(parts, url), events: events.join(), secret: sealed, author: by.actor }
  return { id, secret, result: await parts.writer.run('createWebhook', { id, accountId, scope, ...fields }, by) }
}
