// Changes of a text by ranges. What is outside of the ranges cannot change, so the files of other programs keep it to the
// byte: numbers that JavaScript cannot hold, comments, line breaks.

export interface TextEdit {
  readonly start: number
  /** Behind the last character that is replaced. Equal to `start`: nothing is replaced. */
  readonly end: number
  readonly text: string
}

export const insertAt = (at: number, text: string): TextEdit => ({ start: at, end: at, text })

/** The edits must be in order and must not overlap. */
export const applyEdits = (text: string, edits: readonly TextEdit[]): string =>
  edits.reduceRight((sofar, { start, end, text: added }) => sofar.slice(0, start) + added + sofar.slice(end), text)

/** Adds whole lines at the start of a line or at the end of the text. */
export const insertLines = (text: string, at: number, lines: readonly string[]): TextEdit =>
  insertAt(at, `${at > 0 && text[at - 1] !== '\n' ? '\n' : ''}${lines.join('\n')}\n`)

/** Where the line after the one of `at` starts; the end of the text behind its last line. */
export const nextLine = (text: string, at: number): number => {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}
