// Whether the window is as narrow as a phone: tables are lists of rows with two lines there.

import { useSyncExternalStore } from 'react'

const narrow = matchMedia('(max-width: 767px)')
const onNarrow = (listener: () => void): (() => void) => {
  narrow.addEventListener('change', listener)
  return () => narrow.removeEventListener('change', listener)
}
export const useIsNarrow = (): boolean => useSyncExternalStore(onNarrow, () => narrow.matches)
