// The frame of a page: title, actions, sections, tabs.

import type { LinkProps } from '@tanstack/react-router'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useEffect, useRef } from 'react'
import { useSession } from '../api/session.ts'
import { isolated } from '../words/isolated.ts'
import { Icon } from './icons.tsx'
import { useSearchState } from './search.ts'

interface PageProps {
  readonly title: string
  /** One sentence: what is this page for? */
  readonly intro?: ReactNode
  /** The link to the list that this page belongs to. */
  readonly back?: Pick<LinkProps, 'to' | 'params' | 'search'> & { readonly label: string }
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function Page({ title, intro, back, actions, children }: PageProps) {
  const { site } = useSession()
  const heading = useRef<HTMLHeadingElement>(null)
  const siteName = site?.name ?? 'Weir'
  useEffect(() => {
    document.title = `${isolated(title)} · ${isolated(siteName)}`
  }, [title, siteName])
  // Screen readers learn of a new page by the focus on its title. The first page of a visit keeps the browser's focus.
  useEffect(() => {
    if (document.body.dataset.moved === 'true') heading.current?.focus({ preventScroll: true })
    document.body.dataset.moved = 'true'
  }, [])
  return (
    <div className="flex flex-col gap-6">
      <header className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1 basis-64">
          {back !== undefined && (
            <Link
              {...(back as LinkProps)}
              className="mb-1 inline-flex min-h-6 items-center gap-1 text-muted hover:text-text"
            >
              <Icon name="left" size={14} />
              {back.label}
            </Link>
          )}
          <h1 ref={heading} tabIndex={-1} className="break-words text-lg outline-none">
            {title}
          </h1>
          {intro !== undefined && <p className="max-w-2xl text-muted">{intro}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

interface SectionProps {
  readonly title: string
  readonly note?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function Section({ title, note, actions, children }: SectionProps) {
  return (
    <section aria-label={title} className="min-w-0">
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-2">
        <h2 className="text-sm">{title}</h2>
        {actions}
      </div>
      {note !== undefined && <p className="mb-2 max-w-2xl text-muted">{note}</p>}
      {children}
    </section>
  )
}

/** Tabs are links: `?tab=`. The first is shown without a parameter. */
export function Tabs({
  label,
  of,
}: {
  readonly label: string
  readonly of: readonly { readonly id: string; readonly title: string }[]
}) {
  const [search] = useSearchState()
  const current = search.tab ?? of[0]?.id
  return (
    <nav aria-label={label} className="flex gap-4 overflow-x-auto border-line border-b">
      {of.map(({ id, title }, index) => (
        <Link
          key={id}
          to="."
          search={((old: object) => ({ ...old, tab: index === 0 ? undefined : id })) as never}
          replace
          aria-current={current === id ? 'page' : undefined}
          className={`-mb-px flex min-h-8 items-center border-b-2 whitespace-nowrap ${current === id ? 'border-accent font-medium' : 'border-transparent text-muted hover:text-text'}`}
        >
          {title}
        </Link>
      ))}
    </nav>
  )
}
