// A secret that is shown once: the text of a key or a token, the secret of a webhook, recovery codes, a link to join.
// Leaving before it was copied asks.

import type { ReactNode } from 'react'
import { useState } from 'react'
import { secretOnceWords } from '../words/en/secret-once.ts'
import { useWords } from '../words/words.ts'
import { CopyButton } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { LeaveGuard } from './form.tsx'
import { Icon } from './icons.tsx'
import { saveFile } from './save-file.ts'

interface SecretOnceProps {
  readonly title: string
  /** What to do with it, in one or two sentences. */
  readonly text: ReactNode
  readonly secret: string
  /** The verb on the button: "Copy key". */
  readonly copyLabel: string
  /** With a name the secret can be saved as a file. */
  readonly fileName?: string
  /** The secret is a link for somebody else. */
  readonly isLink?: boolean
  readonly onClose: () => void
  /** Shown below the secret. */
  readonly children?: ReactNode
}

export function SecretOnce({ title, text, secret, copyLabel, fileName, isLink, onClose, children }: SecretOnceProps) {
  const t = useWords(secretOnceWords)
  const [isKept, setKept] = useState(false)
  return (
    <Dialog title={title} onClose={onClose} canClose={isKept} wide={children !== undefined}>
      <div className="flex flex-col gap-4">
        <p className="text-muted">{text}</p>
        <div className="flex flex-col gap-3 rounded-lg border border-line bg-sunken p-3">
          <code className="min-w-0 whitespace-pre-wrap break-all font-mono text-sm leading-6" data-secret-text>
            {secret}
          </code>
          <div className="flex flex-wrap gap-2">
            <CopyButton text={secret} label={copyLabel} onCopied={() => setKept(true)} />
            {fileName !== undefined && (
              <button
                type="button"
                className="button"
                onClick={() => {
                  saveFile(fileName, `${secret}\n`)
                  setKept(true)
                }}
              >
                <Icon name="download" />
                {t('save')}
              </button>
            )}
          </div>
        </div>
        {children}
        <div className="flex justify-end">
          <button type="button" className="button button-main" onClick={onClose}>
            {isLink ? t('doneLink') : t('done')}
          </button>
        </div>
        <LeaveGuard when={!isKept} />
      </div>
    </Dialog>
  )
}
