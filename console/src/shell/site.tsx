// How the site presents itself: its logo, its accent colour, and where people get help.

import type { Site } from '../api/session.ts'
import { useSession } from '../api/session.ts'
import { statesWords } from '../words/en/states.ts'
import { useWords } from '../words/words.ts'

/** Gives the document the accent colour and the icon of the site. styles.css makes the colours from the hue. */
export function showSite({ accentHue, logo }: Site): void {
  const root = document.documentElement
  root.toggleAttribute('data-accent', accentHue !== null)
  root.style.setProperty('--accent-hue', accentHue === null ? null : String(accentHue))
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')!
  icon.dataset.own ??= icon.href
  icon.type = logo === null ? 'image/svg+xml' : 'image/png'
  icon.href = logo ?? icon.dataset.own
}

/** The logo of the site, or the sign of Weir: water flowing over a weir. */
export function Logo() {
  const { site } = useSession()
  if (site?.logo != null) return <img src={site.logo} alt="" className="h-6 max-w-24 shrink-0 object-contain" />
  return (
    <svg
      aria-hidden="true"
      width="20"
      height="20"
      viewBox="0 0 20 20"
      fill="none"
      strokeLinecap="round"
      strokeWidth="1.8"
      className="shrink-0 text-accent"
      stroke="currentColor"
    >
      <path d="M1.5 6.5h6c3 0 3 7 6 7h5" />
      <path d="M1.5 10h4.5c2.4 0 2.6 7 5.5 7h7" opacity="0.55" />
      <path d="M1.5 3h8c3 0 3 7 5.5 7h3.5" opacity="0.55" />
    </svg>
  )
}

/** An address of mail opens the program for mail, and needs no tab of its own. */
const isMail = (url: string): boolean => url.startsWith('mailto:')

export const openSupport = (url: string): void =>
  isMail(url) ? location.assign(url) : void window.open(url, '_blank', 'noopener')

/** A link to where people ask for help; nothing, if the site has not set it. */
export function SupportLink({ className = '' }: { readonly className?: string }) {
  const t = useWords(statesWords)
  const { site } = useSession()
  const url = site?.supportUrl
  if (url == null) return null
  const target = isMail(url) ? {} : { target: '_blank', rel: 'noopener noreferrer' }
  return (
    <a href={url} {...target} className={`link ${className}`}>
      {t('support')}
    </a>
  )
}
