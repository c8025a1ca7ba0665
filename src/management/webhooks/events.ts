// The events that webhooks can receive, and their JSON. The JSON of an event is the same for every attempt.

import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import { timeText } from '../../base/time.ts'
import type { DueDelivery } from '../../store/webhooks/webhook-reader.ts'

type EventRow = Pick<DueDelivery, 'id' | 'event' | 'accountId' | 'data' | 'madeMs'>

/** Events of an account. */
export const accountEvents = ['balance.low', 'balance.empty', 'budget.low', 'key.revoked', 'account.frozen'] as const
/** Events that webhooks of the site can receive: those of accounts, and those of the site itself. */
export const siteEvents = [...accountEvents, 'channel.down', 'channel.up', 'ledger.drift'] as const

export type SiteEvent = Exclude<(typeof siteEvents)[number], (typeof accountEvents)[number]>

const MONEY: ReadonlySet<string> = new Set(['balance', 'credit_limit', 'threshold', 'cap', 'spent'])
const IDS: Readonly<Record<string, string>> = { key: 'key', account: 'acc' }

export function eventText({ id, event, accountId, data, madeMs }: EventRow): string {
  const fields = Object.entries(JSON.parse(data) as Record<string, string | number | null>)
  return JSON.stringify({
    id: eventId(id),
    type: event,
    created: timeText(madeMs),
    account: accountId === null ? null : textId('acc', accountId),
    data: Object.fromEntries(fields.map(([name, value]) => [name, formatValue(name, value)])),
  })
}

/** The headers of a delivery, without its signature, which is made for each attempt. */
export const eventHeaders = ({ id, event }: Pick<EventRow, 'id' | 'event'>): Readonly<Record<string, string>> => ({
  'Content-Type': 'application/json',
  'X-Weir-Event': event,
  'X-Weir-Event-Id': eventId(id),
})

export const eventId = (id: number): string => textId('evt', id)

function formatValue(name: string, value: string | number | null): string | number | null {
  if (value === null) return null
  if (MONEY.has(name)) return formatUsd(nanos(BigInt(value)))
  const prefix = IDS[name]
  return prefix === undefined ? value : textId(prefix, Number(value))
}
