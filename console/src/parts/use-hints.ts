import { useEffect, useState, useSyncExternalStore } from 'react'
import { currentLanguage, onPreferences } from '../preferences.ts'
import { hintWords, loadHints } from '../words/hint-words.ts'

/** For an answer with hints. Renders again when the texts have been loaded, or when the language has changed. */
export function useHints(isNeeded: boolean): ReturnType<typeof hintWords> {
  const language = useSyncExternalStore(onPreferences, currentLanguage)
  const [, setLoaded] = useState(hintWords)
  useEffect(() => {
    if (isNeeded) void loadHints().then(setLoaded)
  })
  return language === 'zh' ? hintWords() : undefined
}
