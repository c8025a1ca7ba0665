// Formats the changes of an audit row for the management interface: ids, money and times look as everywhere else. The
// stored row does not change, because it is part of the hash chain.

import * as z from 'zod'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeText } from '../../base/time.ts'

/** Fields that repeat the row itself, or that only the database needs. */
const HIDDEN: ReadonlySet<string> = new Set(['id', 'account_id', 'ref'])
const IDS: Readonly<Record<string, string>> = { key_id: 'key', keyId: 'key', person_id: 'usr' }
const MONEY: ReadonlySet<string> = new Set(['amount', 'credit', 'credit_limit', 'cap', 'threshold', 'budget'])
/** Actions whose amounts are numbers of calls or tokens. */
const COUNT_ACTIONS: ReadonlySet<string> = new Set(['setLimit', 'changeLimit', 'removeLimit'])

const camel = (name: string): string =>
  name
    .replace(/_ms$|Ms$/, '')
    .replace(/_id$|Id$/, '')
    .replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])

/** The changes of a row as they are shown. */
export const Changes = z.record(z.string(), z.union([scalar, z.array(scalar)])).meta({
  description:
    'For each field of the changed row its old and its new value, as a list of two; and other details of the action, ' +
    'each as one value or a list',
})

type Scalar = z.infer<typeof scalar>

export function formatChanges(action: string, changes: unknown): z.infer<typeof Changes> {
  const shown = Object.entries(changes as Record<string, unknown>).filter(([name]) => !HIDDEN.has(name))
  return Object.fromEntries(
    shown.map(([name, value]) => {
      const format = formatterOf(name, action)
      return [camel(name), Array.isArray(value) ? value.map(one => format(asScalar(one))) : format(asScalar(value))]
    }),
  )
}

/** Plans have no other values (`AuditDetail`), but the log may have rows of another version. */
const asScalar = (value: unknown): Scalar =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as Scalar)

function formatterOf(name: string, action: string): (value: Scalar) => Scalar {
  const idKind = IDS[name]
  if (idKind !== undefined) return formatInteger(digits => textId(idKind, Number(digits)))
  if (/(_ms|Ms)$/.test(name)) return formatInteger(digits => timeText(BigInt(digits)))
  if (MONEY.has(name) && !COUNT_ACTIONS.has(action)) return formatInteger(usdText)
  return value => value
}

/** Formats whole numbers. Other values, such as `all` of a refund, stay as they are. */
const formatInteger =
  (format: (digits: string) => string) =>
  (value: Scalar): Scalar =>
    /^-?\d+$/.test(String(value)) ? format(String(value)) : value
