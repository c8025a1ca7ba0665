// Recomputes the hash chain of the audit log: each row has the SHA-256 of the hash before it and of its own text.

export interface ChainRow {
  readonly seq: number
  readonly actor: string
  readonly action: string
  readonly target: string
  readonly hash: string
  readonly hashBefore?: string
  readonly hashedText?: string
}

/** The number and hash of a row. It stands for all rows up to it. */
export interface ChainHead {
  readonly seq: number
  readonly hash: string
}

type BreakKind = 'missing' | 'link' | 'hash' | 'content' | 'head' | 'short'

export interface ChainState {
  /** The rows that agree, counted from the first. */
  readonly rows: number
  readonly hash: string
  readonly broken?: { readonly seq: number; readonly kind: BreakKind }
}

export const chainStart: ChainState = { rows: 0, hash: '0'.repeat(64) }

const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from({ length: hex.length / 2 }, (_, index) => Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16))

const hexOf = (bytes: ArrayBuffer): string =>
  Array.from(new Uint8Array(bytes), byte => byte.toString(16).padStart(2, '0')).join('')

async function hashOf(before: string, text: string): Promise<string> {
  const [first, second] = [bytesOf(before), new TextEncoder().encode(text)]
  const whole = new Uint8Array(first.length + second.length)
  whole.set(first)
  whole.set(second, first.length)
  return hexOf(await crypto.subtle.digest('SHA-256', whole))
}

/** Whether the row is shown with the content that was hashed: `[seq, madeMs, actor, address, request, action, target, …]`. */
function isShownAsHashed(row: ChainRow): boolean {
  try {
    const [seq, , actor, , , action, target] = JSON.parse(row.hashedText ?? '') as readonly unknown[]
    return seq === row.seq && actor === row.actor && action === row.action && target === row.target
  } catch {
    return false
  }
}

/** Goes on with the next rows, in the order of their numbers. `known` is the head of an earlier check. */
export async function checkRows(state: ChainState, rows: readonly ChainRow[], known?: ChainHead): Promise<ChainState> {
  let now = state
  for (const row of rows) {
    const seq = now.rows + 1
    const broken = async (): Promise<BreakKind | undefined> => {
      if (row.seq !== seq) return 'missing'
      if (row.hashBefore !== now.hash) return 'link'
      if ((await hashOf(now.hash, row.hashedText ?? '')) !== row.hash) return 'hash'
      if (!isShownAsHashed(row)) return 'content'
      return known?.seq === seq && known.hash !== row.hash ? 'head' : undefined
    }
    const kind = await broken()
    if (kind !== undefined) return { ...now, broken: { seq, kind } }
    now = { rows: seq, hash: row.hash }
  }
  return now
}

/** After the last row: a known head beyond the end means that rows were removed. */
export const endOfChain = (state: ChainState, known?: ChainHead): ChainState =>
  state.broken === undefined && known !== undefined && known.seq > state.rows
    ? { ...state, broken: { seq: known.seq, kind: 'short' } }
    : state

/** The text of a saved head, or undefined if it is none. */
export function readHead(text: string): (ChainHead & { readonly saved: string }) | undefined {
  try {
    const { seq, hash, saved } = JSON.parse(text) as { seq?: unknown; hash?: unknown; saved?: unknown }
    const isHead = Number.isSafeInteger(seq) && (seq as number) > 0 && /^[0-9a-f]{64}$/.test(String(hash))
    return isHead
      ? {
          seq: seq as number,
          hash: hash as string,
          saved: Number.isNaN(Date.parse(String(saved))) ? '' : String(saved),
        }
      : undefined
  } catch {
    return undefined
  }
}
