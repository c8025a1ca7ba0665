// What an audit row tells of a change, in the words of the interface: ids, money and times are written as everywhere
// else. The row itself stays as it was chained.

import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'

/** What the row says of itself already, or what only the database knows. */
const LEFT_OUT: ReadonlySet<string> = new Set(['id', 'account_id', 'ref'])
const IDS: Readonly<Record<string, string>> = { key_id: 'key', keyId: 'key', person_id: 'usr' }
const MONEY: ReadonlySet<string> = new Set(['amount', 'credit', 'credit_limit', 'cap', 'threshold'])
/** Theirs are numbers of calls or tokens. */
const COUNTED: ReadonlySet<string> = new Set(['setLimit', 'removeLimit'])

const camel = (name: string): string =>
  name
    .replace(/_ms$|Ms$/, '')
    .replace(/_id$|Id$/, '')
    .replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

export function tellChanges(action: string, changes: unknown): Readonly<Record<string, unknown>> {
  const told = Object.entries(changes as Record<string, unknown>).filter(([name]) => !LEFT_OUT.has(name))
  return Object.fromEntries(
    told.map(([name, value]) => {
      const tell = tellerOf(name, action)
      return [camel(name), Array.isArray(value) ? value.map(tell) : tell(value)]
    }),
  )
}

function tellerOf(name: string, action: string): (value: unknown) => unknown {
  const idKind = IDS[name]
  if (idKind !== undefined) return whole(digits => textId(idKind, Number(digits)))
  if (/(_ms|Ms)$/.test(name)) return whole(digits => new Date(Number(digits)).toISOString())
  if (MONEY.has(name) && !COUNTED.has(action)) return whole(digits => formatUsd(nanos(BigInt(digits))))
  return value => value
}

/** What is no whole number, such as `all` of a refund, is told as it is. */
const whole =
  (tell: (digits: string) => string) =>
  (value: unknown): unknown =>
    /^-?\d+$/.test(String(value)) ? tell(String(value)) : value
