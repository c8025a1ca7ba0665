// The opaque state of a reasoning model, as this upstream issues it. It carries a sum of what it belongs to, so that
// one of another dialect or account, an altered one and one on another text are found out without keeping any.

/** Requests are numbered from a multiple of this; which one is the account that a server stands for. */
export const ordinalsOfAccount = 1_000_000

const accountOf = (ordinal: number): number => Math.floor(ordinal / ordinalsOfAccount)

const SHAPE = /^sig-([a-z]+)-([0-9a-z]+)-([0-9a-z]+)-([0-9a-z]+)$/

/** FNV-1a: short, and the same everywhere. */
function sumOf(text: string): string {
  let sum = 0x811c9dc5
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193) >>> 0
  return sum.toString(36)
}

export interface Issued {
  /** Whose state it is; one word. */
  readonly by: string
  readonly ordinal: number
  /** The reasoning that it stands for. */
  readonly text: string
}

/** The text is made of letters, digits and dashes. */
export function issue({ by, ordinal, text }: Issued): string {
  const start = `sig-${by}-${ordinal.toString(36)}-${sumOf(text)}`
  return `${start}-${sumOf(start)}`
}

/** Who looks at a state: the dialect, and the number of a request that came to the same account. */
export type Looking = Pick<Issued, 'by' | 'ordinal'>

/** Whether it is one of ours. With a text: whether it belongs to this text. */
export function isIssued(state: unknown, looking: Looking, text?: string): boolean {
  const [, who, ordinal = '', ofText, sum] = SHAPE.exec(typeof state === 'string' ? state : '') ?? []
  if (who !== looking.by || sum !== sumOf(`sig-${who}-${ordinal}-${ofText}`)) return false
  if (accountOf(parseInt(ordinal, 36)) !== accountOf(looking.ordinal)) return false
  return text === undefined || ofText === sumOf(text)
}

/** In base64, for dialects whose state is bytes. */
export const issueBytes = (issued: Issued): string => Buffer.from(issue(issued)).toString('base64')

export function isIssuedBytes(state: unknown, looking: Looking): boolean {
  if (typeof state !== 'string') return false
  const text = Buffer.from(state, 'base64')
  // Another spelling of the same bytes is an altered state too.
  return text.toString('base64') === state && isIssued(text.toString('latin1'), looking)
}
