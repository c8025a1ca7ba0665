// The list of shortcuts.

import { Dialog } from '../parts/dialog.tsx'
import { shellWords } from '../words/en/shell.ts'
import { shellPartsWords } from '../words/en/shell-parts.ts'
import { useWords } from '../words/words.ts'
import { navigation } from './navigation.ts'

export function ShortcutsHelp({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(shellPartsWords)
  const shell = useWords(shellWords)
  const rows: readonly (readonly [keys: string, text: string])[] = [
    ['⌘K / Ctrl K', t('keyPalette')],
    ['/', t('keyFilter')],
    ['j, k', t('keyMove')],
    ['Enter', t('keyOpen')],
    ['[, ]', t('keyCalls')],
    ['c', t('keyCreate')],
    ['?', t('keyHelp')],
    ...navigation
      .flatMap(group => group.pages)
      .filter(page => page.letter !== undefined)
      .map(page => [`g ${page.letter}`, t('keyGo', { page: shell(page.word) })] as const),
  ]
  return (
    <Dialog title={shell('shortcutsHelp')} onClose={onClose}>
      <dl className="grid grid-cols-[max-content_1fr] gap-x-6 gap-y-1.5">
        {rows.map(([keys, text]) => (
          <div key={keys} className="contents">
            <dt className="font-mono text-xs leading-5">{keys}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
