// What `weir check` and `weir doctor` find: what is wrong, and what to do about it.

import { harmless } from '../../base/text/safe-text.ts'

/** A problem is to be mended; a note is to be known. */
export type Weight = 'problem' | 'note'

export interface Trouble {
  readonly weight: Weight
  /** The setting, the file, the channel. */
  readonly about: string
  readonly says: string
  /** What to do, where there is something: the command to run. */
  readonly remedy: string
}

/** How it is to be told. */
export interface Wanted {
  readonly json: boolean
}

export const problem = (about: string, says: string, remedy: string): Trouble => ({
  ...{ weight: 'problem', about, says, remedy },
})

export const note = (about: string, says: string, remedy: string): Trouble => ({
  ...{ weight: 'note', about, says, remedy },
})

export const isBad = (troubles: readonly Trouble[]): boolean => troubles.some(({ weight }) => weight === 'problem')

/** Problems first, in the order in which they were found. */
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
