// The frame around all pages of people who are signed in: navigation, account, search, profile, and what the whole console says.

import { CatchBoundary, Link, Outlet, useLocation, useRouterState } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { offline } from '../api/errors.ts'
import { useIsWaiting } from '../api/queries.ts'
import { useRead } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { noteFault, signOut, useMe, useSession } from '../api/session.ts'
import { Dialog, Menu } from '../parts/dialog.tsx'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { useSearchState } from '../parts/search.ts'
import { useErrorText } from '../parts/states.tsx'
import { shellWords } from '../words/en/shell.ts'
import { statesWords } from '../words/en/states.ts'
import { listed } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { useAccount } from './account.ts'
import type { NavigationPage } from './navigation.ts'
import { PageForbidden } from './page-failed.tsx'
import { useShortcuts } from './shortcuts.ts'
import { Logo, openSupport } from './site.tsx'
import { useMaySee, usePages } from './use-pages.ts'

// Not needed for the first look at a page.
const loadPalette = async () => ({ default: (await import('./palette.tsx')).Palette })
const loadPreferences = async () => ({ default: (await import('./preferences-dialog.tsx')).PreferencesDialog })
const loadHelp = async () => ({ default: (await import('./shortcuts-help.tsx')).ShortcutsHelp })
const loadSignIn = async () => ({ default: (await import('../pages/sign-in.tsx')).SignInForm })
const Palette = lazy(loadPalette)
const PreferencesDialog = lazy(loadPreferences)
const ShortcutsHelp = lazy(loadHelp)
const SignInForm = lazy(loadSignIn)

const LATER_MS = 2_000

/** A moment after the page, so that these parts can be opened while the gateway is away. */
const loadParts = (): void => void Promise.allSettled([loadPalette(), loadPreferences(), loadHelp(), loadSignIn()])

export function Shell() {
  const t = useWords(shellWords)
  const states = useWords(statesWords)
  const { state, me, isOffline, isOldTab } = useSession()
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const [isHelpOpen, setHelpOpen] = useState(false)
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [isPreferencesOpen, setPreferencesOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const isMoving = useRouterState({ select: ({ status }) => status === 'pending' })
  const isWaiting = useIsWaiting()
  const { pathname } = useLocation()
  // The page that is shown: the address changes before it.
  const shownPath = useRouterState({ select: ({ matches }) => matches.at(-1)?.pathname ?? '/' })
  const maySee = useMaySee(shownPath)
  const [menuPath, setMenuPath] = useState(pathname)
  if (menuPath !== pathname) {
    setMenuPath(pathname)
    setMenuOpen(false)
  }
  useEffect(() => void setTimeout(loadParts, LATER_MS), [])
  useShortcuts({ openPalette: () => setPaletteOpen(true), openHelp: () => setHelpOpen(true) })
  return (
    <div className="flex min-h-dvh flex-col md:grid md:grid-cols-[208px_minmax(0,1fr)]" translate="no">
      <a href="#content" className="sr-only z-50 bg-surface p-3 focus:not-sr-only focus:fixed focus:top-2 focus:left-2">
        {t('skip')}
      </a>
      <SideBar isOpen={isMenuOpen} close={() => setMenuOpen(false)} openPreferences={() => setPreferencesOpen(true)} />
      <div className="flex min-w-0 flex-1 flex-col">
        <TopBar
          openPalette={() => setPaletteOpen(true)}
          openPreferences={() => setPreferencesOpen(true)}
          openHelp={() => setHelpOpen(true)}
        />
        {isOffline && <Banner tone="bad">{t('offline')}</Banner>}
        {isOldTab && (
          <Banner tone="accent">
            {t('oldTab')}{' '}
            <button type="button" className="link min-h-6" onClick={() => location.reload()}>
              {states('reload')}
            </button>
          </Banner>
        )}
        <main
          ref={main}
          id="content"
          tabIndex={-1}
          data-ready={!isMoving && !isWaiting ? 'true' : undefined}
          className="min-w-0 flex-1 px-4 pt-4 pb-24 outline-none md:px-6 md:pb-12"
        >
          {/* The page of another person begins anew. */}
          {maySee ? <Outlet key={me?.id} /> : <PageForbidden key={shownPath} />}
        </main>
      </div>
      <BottomBar openMenu={() => setMenuOpen(!isMenuOpen)} isMenuOpen={isMenuOpen} />
      {/* A part that cannot be loaded must not take the page with it, and what is written there. */}
      <CatchBoundary
        getResetKey={() => state}
        errorComponent={() => null}
        onCatch={error => noteFault(offline(String(error)))}
      >
        <Suspense>
          {isPaletteOpen && <Palette onClose={() => setPaletteOpen(false)} />}
          {isHelpOpen && <ShortcutsHelp onClose={() => setHelpOpen(false)} />}
          {isPreferencesOpen && <PreferencesDialog onClose={() => setPreferencesOpen(false)} />}
          {state === 'over' && (
            <Dialog title={t('sessionOver')} onClose={() => undefined} canClose={false}>
              <p className="mb-4 text-muted">{t('sessionOverText')}</p>
              <SignInForm />
            </Dialog>
          )}
        </Suspense>
      </CatchBoundary>
    </div>
  )
}

function Banner({ tone, children }: { readonly tone: 'bad' | 'accent'; readonly children: ReactNode }) {
  return (
    <div role="status" className={`px-4 py-2 md:px-6 ${tone === 'bad' ? 'bg-bad-soft text-bad' : 'bg-accent-soft'}`}>
      {children}
    </div>
  )
}

function PageLink({ page, isBar = false }: { readonly page: NavigationPage; readonly isBar?: boolean }) {
  const t = useWords(shellWords)
  const { pathname } = useLocation()
  const isCurrent = page.to === '/' ? pathname === '/' : pathname === page.to || pathname.startsWith(`${page.to}/`)
  if (isBar) {
    return (
      <Link
        to={page.to}
        aria-current={isCurrent ? 'page' : undefined}
        className={`flex h-14 min-w-0 flex-1 flex-col items-center justify-center gap-0.5 text-xs ${isCurrent ? 'text-accent' : 'text-muted'}`}
      >
        <Icon name={page.icon} size={18} />
        <span className="max-w-full truncate">{t(page.word)}</span>
      </Link>
    )
  }
  return (
    <Link
      to={page.to}
      aria-current={isCurrent ? 'page' : undefined}
      className={`flex min-h-7 items-center gap-2 rounded px-2 max-md:min-h-11 ${isCurrent ? 'bg-accent-soft font-medium text-accent' : 'text-text hover:bg-line/50'}`}
    >
      <Icon name={page.icon} />
      {t(page.word)}
    </Link>
  )
}

interface SideBarProps {
  readonly isOpen: boolean
  readonly close: () => void
  readonly openPreferences: () => void
}

function SideBar({ isOpen }: SideBarProps) {
  const t = useWords(shellWords)
  const { site } = useSession()
  const groups = usePages()
  const { pathname } = useLocation()
  const nav = useRef<HTMLElement>(null)
  // In a low window the last pages are below its edge.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the link of another page is the current one
  useEffect(() => {
    // Without a block the effect would return the promise of newer browsers.
    void nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [pathname])
  return (
    <nav
      ref={nav}
      aria-label={t('navigation')}
      className={`${isOpen ? 'fixed inset-0 bottom-14 z-40 block' : 'hidden'} overflow-y-auto border-line border-r bg-sunken px-2 py-3 md:sticky md:top-0 md:block md:h-dvh`}
    >
      <Link to="/" className="mb-2 flex min-h-7 items-center gap-2 px-2 font-semibold text-[15px]">
        <Logo />
        <span className="truncate" title={site?.name}>
          {site?.name ?? 'Weir'}
        </span>
      </Link>
      {groups.map(group => (
        <div key={group.word} className="mb-2">
          <p className="px-2 pb-0.5 text-muted text-xs">{t(group.word)}</p>
          <ul>
            {group.pages.map(page => (
              <li key={page.to}>
                <PageLink page={page} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}

interface TopBarProps {
  readonly openPalette: () => void
  readonly openPreferences: () => void
  readonly openHelp: () => void
}

function TopBar({ openPalette, openPreferences, openHelp }: TopBarProps) {
  const t = useWords(shellWords)
  const me = useMe()
  return (
    <header className="sticky top-0 z-20 flex h-12 items-center gap-2 border-line border-b bg-bg px-4 md:static md:px-6">
      <Link to="/" className="md:hidden" aria-label={t('overview')}>
        <Logo />
      </Link>
      <AccountChoice />
      <button
        type="button"
        className="button button-quiet ml-auto min-w-0 justify-start text-muted md:min-w-56 md:border-line"
        onClick={openPalette}
      >
        <Icon name="search" />
        <span className="font-normal max-md:sr-only">{t('search')}</span>
        <kbd className="ml-auto hidden font-sans text-xs md:inline">
          {navigator.platform.startsWith('Mac') ? '⌘K' : 'Ctrl K'}
        </kbd>
      </button>
      <ProfileMenu name={me.name} openPreferences={openPreferences} openHelp={openHelp} />
    </header>
  )
}

function ProfileMenu({
  name,
  openPreferences,
  openHelp,
}: {
  readonly name: string
  readonly openPreferences: () => void
  readonly openHelp: () => void
}) {
  const t = useWords(shellWords)
  const states = useWords(statesWords)
  const textOf = useErrorText()
  const supportUrl = useSession().site?.supportUrl
  const link = useRef<HTMLAnchorElement>(null)
  return (
    <>
      <Link ref={link} to="/me" className="hidden" tabIndex={-1} aria-hidden="true" />
      <Menu
        label={t('you')}
        className="button button-quiet max-w-48"
        items={[
          { label: t('me'), icon: 'account', run: () => link.current?.click() },
          { label: listed([t('language'), t('theme')]), icon: 'sun', run: openPreferences },
          { label: t('shortcutsHelp'), icon: 'info', run: openHelp },
          { label: t('docs'), icon: 'external', run: () => window.open('/docs', '_blank', 'noopener') },
          supportUrl != null && { label: states('support'), icon: 'info', run: () => openSupport(supportUrl) },
          {
            label: t('signOut'),
            icon: 'out',
            // Whoever stays signed in must know it.
            run: () => void signOut().catch(error => say(textOf(error), { isBad: true })),
          },
        ]}
      >
        <Icon name="account" />
        <span className="truncate max-md:hidden" title={name}>
          {name}
        </span>
        <span className="md:hidden">
          <span className="sr-only">{t('you')}</span>
        </span>
        <Icon name="down" size={12} />
      </Menu>
    </>
  )
}

/** Who has one account never sees this. */
function AccountChoice() {
  const t = useWords(shellWords)
  const me = useMe()
  const chosen = useAccount()
  const [search, change] = useSearchState()
  const staff = isStaff(me)
  const isForeign = chosen !== undefined && chosen.name === undefined
  const foreign = useRead(
    'GET /api/web/accounts/{account}',
    { params: { account: chosen?.id ?? '' } },
    { enabled: isForeign && staff },
  )
  if (!staff && me.accounts.length <= 1) return null
  if (staff && chosen === undefined && me.accounts.length === 0) return null
  return (
    <div className="flex min-w-0 items-center gap-1">
      <select
        aria-label={t('chooseAccount')}
        className="control max-w-56 min-w-0 border-line"
        value={search.account ?? (staff ? '' : chosen?.id)}
        onChange={event => change({ account: event.target.value === '' ? undefined : event.target.value })}
      >
        {staff && <option value="">{t('allAccounts')}</option>}
        {me.accounts.map(({ account, name }) => (
          <option key={account} value={account}>
            {name}
          </option>
        ))}
        {isForeign && <option value={chosen.id}>{foreign.data?.name ?? chosen.id}</option>}
      </select>
    </div>
  )
}

function BottomBar({ openMenu, isMenuOpen }: { readonly openMenu: () => void; readonly isMenuOpen: boolean }) {
  const t = useWords(shellWords)
  const pages = usePages().flatMap(group => group.pages)
  const wanted = ['/', '/records', '/live', '/funds', '/keys']
  const shown = wanted
    .map(to => pages.find(page => page.to === to))
    .filter(page => page !== undefined)
    .slice(0, 4)
  return (
    <nav
      aria-label={t('more')}
      className="fixed inset-x-0 bottom-0 z-40 flex border-line border-t bg-surface md:hidden"
    >
      {shown.map(page => (
        <PageLink key={page.to} page={page} isBar />
      ))}
      <button
        type="button"
        aria-expanded={isMenuOpen}
        className="flex h-14 min-w-0 flex-1 flex-col items-center justify-center gap-0.5 text-muted text-xs"
        onClick={openMenu}
      >
        <Icon name="menu" size={18} />
        {t('more')}
      </button>
    </nav>
  )
}
