// Buttons that copy text, and code that can be copied.

import { useEffect, useState } from 'react'
import { valuesWords } from '../words/en/values.ts'
import { labelled } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { Icon } from './icons.tsx'

/** Browsers have a clipboard only on https and on localhost; elsewhere a selection is copied, as in older browsers. */
function writeToClipboard(text: string): Promise<void> {
  if ('clipboard' in navigator) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  const opener = document.activeElement
  const parent = document.querySelector('dialog[open]') ?? document.body
  parent.append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (opener instanceof HTMLElement) opener.focus()
  return isCopied ? Promise.resolve() : Promise.reject(new Error('The browser refused to copy.'))
}

interface CopyProps {
  readonly text: string
  /** Shown beside the sign; otherwise the button has only the sign. */
  readonly label?: string
  readonly onCopied?: () => void
}

export function CopyButton({ text, label, onCopied }: CopyProps) {
  const t = useWords(valuesWords)
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(() => setState('idle'), 2_000)
    return () => clearTimeout(timer)
  }, [state])
  const said = state === 'idle' ? t('copy') : state === 'copied' ? t('copied') : t('copyFailed')
  const copy = (): void => {
    writeToClipboard(text).then(
      () => {
        setState('copied')
        onCopied?.()
      },
      () => setState('failed'),
    )
  }
  if (label !== undefined) {
    return (
      <button type="button" className="button" onClick={copy}>
        <Icon name={state === 'copied' ? 'check' : 'copy'} />
        {state === 'idle' ? label : said}
      </button>
    )
  }
  return (
    <button
      type="button"
      className="inline-grid size-6 shrink-0 place-items-center rounded-sm text-muted hover:bg-sunken hover:text-text"
      aria-label={labelled(said, text.length > 60 ? `${text.slice(0, 60)}…` : text)}
      title={said}
      onClick={event => {
        event.stopPropagation()
        event.preventDefault()
        copy()
      }}
    >
      <Icon name={state === 'copied' ? 'check' : 'copy'} size={14} />
    </button>
  )
}

/** A block of code with a button to copy it. */
export function Code({ text, label }: { readonly text: string; readonly label?: string }) {
  const t = useWords(valuesWords)
  return (
    <div className="relative rounded-lg border border-line bg-sunken">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard */}
      <section tabIndex={0} aria-label={label ?? t('code')} className="mr-10 overflow-x-auto py-3 pl-3">
        <pre className="font-mono text-xs leading-5">{text}</pre>
      </section>
      <span className="absolute top-1.5 right-1.5">
        <CopyButton text={text} />
      </span>
    </div>
  )
}
