// The interface of webhooks for the rest of Weir: the deliverer, the URL check, and raising events.

import { describeFault } from '../../base/log.ts'
import type { WebhookClient } from '../../http/client/webhook-client.ts'
import type { WebhookReader } from '../../store/webhooks/webhook-reader.ts'
import type { DelivererParts } from './deliverer.ts'
import { WebhookDeliverer } from './deliverer.ts'
import type { SiteEvent } from './events.ts'

export interface Webhooks {
  readonly outside: Pick<WebhookClient, 'checkUrl'>
  readonly deliverer: WebhookDeliverer
  /** Raises an event that only a running gateway can see. An event that no webhook wants is not written. */
  raise(event: SiteEvent, data: Readonly<Record<string, string>>): void
}

export interface WebhookParts extends DelivererParts {
  readonly reader: WebhookReader
  readonly outside: WebhookClient
}

export function buildWebhooks(parts: WebhookParts): Webhooks {
  const { reader, writer, log } = parts
  const write = async (event: SiteEvent, data: Readonly<Record<string, string>>): Promise<void> => {
    if (!(await reader.hasSubscriber(event))) return
    await writer.run('raiseEvent', { event, accountId: null, data: JSON.stringify(data) })
  }
  return {
    outside: parts.outside,
    deliverer: new WebhookDeliverer(parts),
    raise(event, data) {
      write(event, data).catch((fault: unknown) => {
        log.error('an event for webhooks could not be written', { what: event, fault: describeFault(fault) })
      })
    },
  }
}
