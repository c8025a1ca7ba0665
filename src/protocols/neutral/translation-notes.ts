// What one translation remembers between the request and its answer.

import type { Losses } from './losses.ts'

/** What the writer of a request leaves for the reader of its answer, and both for the caller. */
export interface TranslationNotes {
  readonly losses: Losses
  /** Names of tools that had to be changed for this upstream: as written → as the caller has it. */
  readonly renamed: Map<string, string>
  /** The answer is held to a schema by a tool of this name: its arguments are the text of the answer. */
  schemaTool?: string
  /** Custom tools, by their names as written, that this upstream was given as functions of one text, `input`. */
  wrapped?: Set<string>
}
