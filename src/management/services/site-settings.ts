// The site's settings, as they are now: what the owner has set over what they are unless told.

import type { Reader } from '../../store/engine/reader.ts'

/** Times are days, money is US dollars in decimals. */
export interface SiteSettings {
  readonly siteName: string
  /** Shown to everybody; empty: nothing. */
  readonly notice: string
  /** Whether whoever likes may come in. */
  readonly registration: 'off' | 'open'
  /** Of addresses that may register; none: all of them. */
  readonly allowedDomains: readonly string[]
  /** Who may invite others: admins and owners, or managers of accounts as well. */
  readonly invitations: 'admins' | 'managers'
  /** Of the keys of whoever comes in with an account of their own. */
  readonly defaultTier: string
  /** For whoever registers. */
  readonly startingCredit: string
  /** How long records of calls stay; 0: for good. */
  readonly retentionDays: number
}

export type SiteDefaults = Omit<SiteSettings, 'siteName'>

export const siteDefaults: SiteDefaults = {
  notice: '',
  registration: 'off',
  allowedDomains: [],
  invitations: 'managers',
  defaultTier: 'standard',
  startingCredit: '0',
  retentionDays: 0,
}

const ROW = 'site'

export class SiteBook {
  readonly #reader: Pick<Reader, 'setting'>
  readonly #defaults: SiteSettings
  #current: SiteSettings

  constructor(reader: Pick<Reader, 'setting'>, siteName: string) {
    this.#reader = reader
    this.#defaults = { siteName, ...siteDefaults }
    this.#current = this.#read()
  }

  get current(): SiteSettings {
    return this.#current
  }

  /** After they were changed, durably. */
  renew(): void {
    this.#current = this.#read()
  }

  #read(): SiteSettings {
    const kept = JSON.parse(this.#reader.setting(ROW) ?? '{}') as Partial<SiteSettings>
    return { ...this.#defaults, ...kept }
  }
}
