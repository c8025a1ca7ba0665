// One box that goes to a page, or finds an account, a key, a call by its id, and more.

import { useNavigate } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState } from 'react'
import { useRead } from '../api/reads.ts'
import type { IconName } from '../parts/icons.tsx'
import { Icon } from '../parts/icons.tsx'
import { shellWords } from '../words/en/shell.ts'
import { shellPartsWords } from '../words/en/shell-parts.ts'
import { useWords } from '../words/words.ts'
import { usePages } from './use-pages.ts'

interface Hit {
  readonly id: string
  readonly label: string
  readonly detail: string
  readonly icon: IconName
  readonly to: string
}

/** Where the page of a found thing is, by its kind. */
const places: Readonly<Record<string, { readonly icon: IconName; to(id: string): string }>> = {
  account: { icon: 'accounts', to: id => `/accounts/${id}` },
  person: { icon: 'people', to: id => `/people/${id}` },
  key: { icon: 'key', to: id => `/keys/${id}` },
  call: { icon: 'records', to: id => `/records/${id}` },
  channel: { icon: 'channels', to: id => `/channels/${encodeURIComponent(id)}` },
  provider: { icon: 'providers', to: id => `/providers/${encodeURIComponent(id)}` },
  model: { icon: 'models', to: id => `/models/${id}` },
  route: { icon: 'routes', to: id => `/routes/${encodeURIComponent(id)}` },
  tier: { icon: 'tiers', to: id => `/tiers?tier=${encodeURIComponent(id)}` },
  webhook: { icon: 'webhooks', to: id => `/webhooks/${id}` },
  code_batch: { icon: 'codes', to: id => `/codes?tab=codes&batch=${encodeURIComponent(id)}` },
}

function useHits(text: string): readonly Hit[] {
  const t = useWords(shellPartsWords)
  const shell = useWords(shellWords)
  const wanted = text.trim().toLowerCase()
  const pages = usePages().flatMap(group => group.pages)
  const pageHits = pages
    .filter(page => shell(page.word).toLowerCase().includes(wanted))
    .map(
      (page): Hit => ({
        id: page.to,
        label: shell(page.word),
        detail: t('palettePages'),
        icon: page.icon,
        to: page.to,
      }),
    )
  const { data } = useRead(
    'GET /api/web/search',
    { query: { text: text.trim() } },
    { enabled: text.trim().length >= 2, keepsPrevious: true },
  )
  // Of a channel, the detail is its state.
  const detailOf = ({ kind, detail, id }: { kind: string; detail: string | null; id: string }): string =>
    (kind === 'channel' ? t.find(`channel_${detail}`) : undefined) ?? detail ?? id
  const found = wanted.length < 2 ? [] : (data?.data ?? [])
  const foundHits = found.flatMap((hit): Hit[] => {
    const place = places[hit.kind]
    return place === undefined
      ? []
      : [
          {
            id: `${hit.kind} ${hit.id}`,
            label: hit.kind === 'call' ? hit.id : hit.name,
            detail: hit.kind === 'call' ? hit.name : detailOf(hit),
            icon: place.icon,
            to: place.to(hit.id),
          },
        ]
  })
  return [...pageHits, ...foundHits]
}

export function Palette({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(shellPartsWords)
  const shell = useWords(shellWords)
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [sent, setSent] = useState('')
  const [at, setAt] = useState(0)
  const navigate = useNavigate()
  const listId = useId()
  useEffect(() => {
    const opener = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  useEffect(() => {
    const timer = setTimeout(() => setSent(text), 200)
    return () => clearTimeout(timer)
  }, [text])
  const hits = useHits(sent === '' ? text : sent)
  const current = Math.min(at, hits.length - 1)
  const go = (hit: Hit | undefined): void => {
    if (hit === undefined) return
    onClose()
    const [pathname, search] = hit.to.split('?')
    void navigate({ to: pathname!, search: Object.fromEntries(new URLSearchParams(search)) as never })
  }
  return (
    <dialog
      ref={dialog}
      aria-label={t('palette')}
      className="opens floating mx-auto mt-[12dvh] w-[calc(100%-24px)] max-w-xl overflow-hidden p-0"
      onCancel={event => {
        event.preventDefault()
        onClose()
      }}
      onClose={onClose}
      onClick={event => {
        if (event.target === dialog.current) onClose()
      }}
      onKeyDown={event => {
        if (event.nativeEvent.isComposing) return
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
        if (step !== 0) {
          event.preventDefault()
          setAt((current + step + hits.length) % Math.max(1, hits.length))
        } else if (event.key === 'Enter') {
          event.preventDefault()
          go(hits[current])
        }
      }}
    >
      <div className="flex items-center gap-2 border-line border-b px-3">
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={hits[current] === undefined ? undefined : `${listId}-${current}`}
          aria-label={t('palette')}
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          className="h-11 w-full bg-transparent outline-none"
          placeholder={shell('search')}
          value={text}
          onChange={event => {
            setText(event.target.value)
            setAt(0)
          }}
        />
      </div>
      {hits.length === 0 && <p className="p-4 text-muted">{t('paletteEmpty')}</p>}
      <div
        id={listId}
        role="listbox"
        aria-label={t('palette')}
        className={`max-h-[50dvh] overflow-y-auto ${hits.length === 0 ? '' : 'p-1'}`}
      >
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the dialog handles Enter
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the box, which names the current option
          <div
            key={hit.id}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === current}
            ref={element => {
              if (index === current) element?.scrollIntoView({ block: 'nearest' })
            }}
            className={`flex h-9 cursor-pointer items-center gap-2 rounded px-2 ${index === current ? 'bg-accent-soft' : ''}`}
            onMouseMove={() => setAt(index)}
            onClick={() => go(hit)}
          >
            <Icon name={hit.icon} />
            <span className="min-w-0 truncate">{hit.label}</span>
            <span className="ml-auto max-w-[45%] shrink-0 truncate text-muted text-xs">{hit.detail}</span>
          </div>
        ))}
      </div>
    </dialog>
  )
}
