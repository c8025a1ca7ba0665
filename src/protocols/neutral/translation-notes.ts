// What a translation keeps from the request for the answer.

import type { Losses } from './losses.ts'

/** Written by the writer of the request, used by the reader of the answer. */
export interface TranslationNotes {
  readonly losses: Losses
  /** Tool names that were changed for this upstream: new name → caller's name. */
  readonly renamed: Map<string, string>
  /** The caller speaks the upstream's dialect, so that parts which only this dialect has reach it. */
  readonly isNative?: boolean
  /** The tool that stands for the answer's schema. The arguments of its call are the text of the answer. */
  schemaTool?: string
  /** Custom tools that were written as functions with one text argument, `input`. By their names in the request. */
  wrapped?: Set<string>
}
