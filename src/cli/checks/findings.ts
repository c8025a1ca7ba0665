// The findings of `weir check` and `weir doctor`: what is wrong, and what to do about it.

import { escapeControls } from '../../base/text/safe-text.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import type { CommandFields } from '../connect.ts'

/** How a command prints its result. */
export interface OutputOptions {
  readonly json: boolean
}

export const problem = (about: string, says: string, remedy: string): CheckFinding => ({
  weight: 'problem',
  about,
  says,
  remedy,
})

export const note = (about: string, says: string, remedy: string): CheckFinding => ({
  weight: 'note',
  about,
  says,
  remedy,
})

export const hasProblem = (troubles: readonly CheckFinding[]): boolean =>
  troubles.some(({ weight }) => weight === 'problem')

/** Prints problems before notes, each in the order in which they were found. */
export function findingLines(troubles: readonly CheckFinding[]): readonly string[] {
  return sortBySeverity(troubles).flatMap(({ weight, about, says, remedy }) => [
    escapeControls(`${weight === 'problem' ? '✗' : '·'} ${about}: ${says}`),
    ...(remedy === '' ? [] : [escapeControls(`    ${remedy}`)]),
  ])
}

/** The findings for programs, problems before notes. */
export const findingFields = (troubles: readonly CheckFinding[]): readonly CommandFields[] =>
  sortBySeverity(troubles).map(({ remedy, ...finding }) => ({ ...finding, remedy: remedy === '' ? null : remedy }))

const sortBySeverity = (troubles: readonly CheckFinding[]): readonly CheckFinding[] => [
  ...troubles.filter(({ weight }) => weight === 'problem'),
  ...troubles.filter(({ weight }) => weight === 'note'),
]
