import { useSyncExternalStore } from 'react'
import { useQuery } from '../api/reads.ts'
import { currentLanguage, onPreferences } from '../preferences.ts'
import { hintWords, loadHints } from '../words/hint-words.ts'

type HintWords = NonNullable<ReturnType<typeof hintWords>>

/** Chooses a text in the language of the viewer. A hint of a later version has no Chinese text, and stays English. */
type Choose = <T extends string | null | undefined>(
  chinese: (words: HintWords) => string | undefined,
  english: T,
) => string | T

/** A space that keeps the height of a line. */
const BLANK = '\u00a0'

/**
 * For an answer with hints. Until the Chinese texts have been loaded, their places are blank, because an English text would
 * flash there. If they cannot be loaded, the texts are English.
 */
export function useHints(isNeeded: boolean): Choose {
  const language = useSyncExternalStore(onPreferences, currentLanguage)
  const isChinese = isNeeded && language === 'zh'
  const { data } = useQuery<HintWords | null>({
    queryKey: ['hints'],
    // Null: they cannot be loaded.
    queryFn: async () => (await loadHints()) ?? null,
    initialData: hintWords,
    enabled: isChinese,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (chinese, english) => {
    if (!isChinese || data === null) return english
    return data === undefined ? BLANK : (chinese(data) ?? english)
  }
}
