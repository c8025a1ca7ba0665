// The findings of `weir check` and `weir doctor`: what is wrong, and what to do about it.

import { harmless } from '../../base/text/safe-text.ts'

/** The operator must fix a problem and should know about a note. */
export type Weight = 'problem' | 'note'

export interface Trouble {
  readonly weight: Weight
  /** The setting, file or channel that the finding is about. */
  readonly about: string
  readonly says: string
  /** What to do, such as the command to run; empty if there is nothing to do. */
  readonly remedy: string
}

/** How a command prints its result. */
export interface Wanted {
  readonly json: boolean
}

export const problem = (about: string, says: string, remedy: string): Trouble => ({
  weight: 'problem',
  about,
  says,
  remedy,
})

export const note = (about: string, says: string, remedy: string): Trouble => ({
  weight: 'note',
  about,
  says,
  remedy,
})

export const isBad = (troubles: readonly Trouble[]): boolean => troubles.some(({ weight }) => weight === 'problem')

/** Prints problems before notes, each in the order in which they were found. */
export function troubleLines(troubles: readonly Trouble[]): readonly string[] {
  return inOrder(troubles).flatMap(({ weight, about, says, remedy }) => [
    harmless(`${weight === 'problem' ? '✗' : '·'} ${about}: ${says}`),
    ...(remedy === '' ? [] : [harmless(`    ${remedy}`)]),
  ])
}

export const inOrder = (troubles: readonly Trouble[]): readonly Trouble[] => [
  ...troubles.filter(({ weight }) => weight === 'problem'),
  ...troubles.filter(({ weight }) => weight === 'note'),
]
