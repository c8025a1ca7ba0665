// Issues the opaque state of a reasoning model. The state holds checksums, so that the fake upstream can recognise state
// of another dialect or account, altered state, and state on another text, without storing any.

/** The requests of each account are numbered from a multiple of this. */
export const ordinalsPerAccount = 1_000_000

const findAccount = (ordinal: number): number => Math.floor(ordinal / ordinalsPerAccount)

const STATE_FORMAT = /^sig-([a-z]+)-([0-9a-z]+)-([0-9a-z]+)-([0-9a-z]+)$/

/** FNV-1a: a short checksum that is the same on every machine. */
function checksum(text: string): string {
  let sum = 0x811c9dc5
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193) >>> 0
  return sum.toString(36)
}

export interface IssuedState {
  /** The dialect that issued the state; one word. */
  readonly by: string
  readonly ordinal: number
  /** The reasoning that the state belongs to. */
  readonly text: string
}

/** Issues a state, which consists of letters, digits and dashes. */
export function issueState({ by, ordinal, text }: IssuedState): string {
  const start = `sig-${by}-${ordinal.toString(36)}-${checksum(text)}`
  return `${start}-${checksum(start)}`
}

/** Who checks a state: the dialect, and the number of a request to the same account. */
export type StateReader = Pick<IssuedState, 'by' | 'ordinal'>

/** Whether this dialect and account issued the state. With a text: whether the state belongs to this text. */
export function isIssuedState(state: unknown, looking: StateReader, text?: string): boolean {
  const [, who, ordinal = '', ofText, sum] = STATE_FORMAT.exec(typeof state === 'string' ? state : '') ?? []
  if (who !== looking.by || sum !== checksum(`sig-${who}-${ordinal}-${ofText}`)) return false
  if (findAccount(parseInt(ordinal, 36)) !== findAccount(looking.ordinal)) return false
  return text === undefined || ofText === checksum(text)
}

/** Issues a state in base64, for dialects whose state is bytes. */
export const issueStateBytes = (issued: IssuedState): string => Buffer.from(issueState(issued)).toString('base64')

export function isIssuedStateBytes(state: unknown, looking: StateReader): boolean {
  if (typeof state !== 'string') return false
  const text = Buffer.from(state, 'base64')
  // Other base64 of the same bytes counts as altered state, too.
  return text.toString('base64') === state && isIssuedState(text.toString('latin1'), looking)
}
