// Money as text. It is computed in whole nano-dollars, never as a float.

const NANOS = 1_000_000_000n

/** Decimal text of US dollars, as the API has it, in nano-dollars. Money is never a float. */
export function nanosOf(usd: string): bigint {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(usd) ?? []
  if (whole === undefined) throw new TypeError(`This is no amount of dollars: ${usd}`)
  const amount = BigInt(whole) * NANOS + BigInt(fraction.padEnd(9, '0'))
  return sign === '-' ? -amount : amount
}

const grouped = (whole: bigint): string => whole.toString().replace(/\B(?=(\d{3})+$)/g, ',')
const signOf = (amount: bigint): string => (amount < 0n ? '\u2212' : '')
const absolute = (amount: bigint): bigint => (amount < 0n ? -amount : amount)

/** Rounds half away from zero to `digits` decimals. */
function rounded(amount: bigint, digits: number): bigint {
  const unit = 10n ** BigInt(9 - digits)
  return ((absolute(amount) + unit / 2n) / unit) * unit
}

const decimals = (amount: bigint, digits: number): string =>
  (absolute(amount) % NANOS).toString().padStart(9, '0').slice(0, digits)

/** All digits: `$0.00482`, `−$12.50`. For copies, hovers and exports. */
export function exactMoney(usd: string): string {
  const amount = nanosOf(usd)
  const fraction = decimals(amount, 9).replace(/0+$/, '').padEnd(2, '0')
  return `${signOf(amount)}$${grouped(absolute(amount) / NANOS)}.${fraction}`
}

/** For tiles and sentences: two decimals from one dollar on, below it three significant digits. */
export function shortMoney(usd: string | bigint): string {
  const amount = typeof usd === 'bigint' ? usd : nanosOf(usd)
  const size = absolute(amount)
  if (size === 0n || size >= NANOS) {
    const cents = rounded(amount, 2)
    return `${signOf(amount)}$${grouped(cents / NANOS)}.${decimals(cents, 2)}`
  }
  const first = 9 - size.toString().length
  const digits = Math.max(2, Math.min(9, first + 3))
  const near = rounded(amount, digits)
  return `${signOf(amount)}$${grouped(near / NANOS)}.${decimals(near, digits).replace(/0+$/, '').padEnd(2, '0')}`
}

/** A number of dollars at the axis of a chart. */
export const axisMoney = (dollars: number): string =>
  dollars === 0 ? '$0' : shortMoney(BigInt(Math.round(dollars * 1e9)))

interface MoneyColumn {
  /** With the sign, up to two decimals. */
  readonly main: string
  /** The third to the sixth decimal, shown muted. */
  readonly rest: string
}

/** For columns: always six decimals, so that the points stand below each other. */
export function columnMoney(usd: string): MoneyColumn {
  const amount = nanosOf(usd)
  if (amount === 0n) return { main: '\u2013', rest: '' }
  const near = rounded(amount, 6)
  if (near === 0n) return { main: `<${signOf(amount)}$0.000001`, rest: '' }
  const digits = decimals(near, 6)
  return { main: `${signOf(amount)}$${grouped(near / NANOS)}.${digits.slice(0, 2)}`, rest: digits.slice(2) }
}

export const sumMoney = (amounts: Iterable<string>): bigint => {
  let sum = 0n
  for (const amount of amounts) sum += nanosOf(amount)
  return sum
}

export const usdOf = (amount: bigint): string => {
  const fraction = decimals(amount, 9).replace(/0+$/, '')
  return `${amount < 0n ? '-' : ''}${absolute(amount) / NANOS}${fraction === '' ? '' : `.${fraction}`}`
}
