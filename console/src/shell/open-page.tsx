// The frame of pages for people who are not signed in.

import type { ReactNode } from 'react'
import { useEffect } from 'react'
import { useIsWaiting } from '../api/queries.ts'
import { useSession } from '../api/session.ts'
import { setPreferences, usePreferences } from '../preferences.ts'
import { isolated } from '../words/isolated.ts'
import { loadLanguage } from '../words/words.ts'
import { Logo, SupportLink } from './site.tsx'

export function OpenPage({
  title,
  children,
  wide = false,
}: {
  readonly title: string
  readonly children: ReactNode
  readonly wide?: boolean
}) {
  const { site } = useSession()
  const { language } = usePreferences()
  const isWaiting = useIsWaiting()
  const name = site?.name ?? 'Weir'
  useEffect(() => {
    document.title = `${title} · ${isolated(name)}`
  }, [title, name])
  const other = language === 'en' ? ({ id: 'zh', name: '简体中文' } as const) : ({ id: 'en', name: 'English' } as const)
  const switchLanguage = async (): Promise<void> => {
    await loadLanguage(other.id)
    setPreferences({ language: other.id })
  }
  return (
    <div className="min-h-dvh" translate="no">
      <header className="flex h-12 items-center justify-between px-4 md:px-6">
        <span className="flex min-w-0 items-center gap-2 font-semibold text-[15px]">
          <Logo />
          <span className="truncate" title={name}>
            {name}
          </span>
        </span>
        <button
          type="button"
          className="button button-quiet"
          lang={other.id === 'zh' ? 'zh-CN' : 'en'}
          onClick={() => void switchLanguage()}
        >
          {other.name}
        </button>
      </header>
      <main
        data-ready={isWaiting ? undefined : 'true'}
        className={`mx-auto px-4 pt-[8vh] pb-12 ${wide ? 'max-w-5xl' : 'max-w-sm'}`}
      >
        <h1 className="mb-4 text-lg">{title}</h1>
        {children}
        <SupportLink className="mt-6 inline-block" />
      </main>
    </div>
  )
}
