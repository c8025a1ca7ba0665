// A finding of `weir check`, `weir doctor` or the gateway itself: what is wrong, and what to do about it.

/** The operator must fix a problem and should know about a note. */
export type Severity = 'problem' | 'note'

export interface CheckFinding {
  readonly weight: Severity
  /** The setting, file or channel that the finding is about. */
  readonly about: string
  readonly says: string
  /** What to do, such as the command to run; empty if there is nothing to do. */
  readonly remedy: string
}
