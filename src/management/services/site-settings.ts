// The current settings of the site: the values that the owner has set, and defaults for the others.

import type { Reader } from '../../store/engine/reader.ts'
import { buildWriteQueue } from './write-queue.ts'

/** Times are days, money is US dollars in decimals. */
export interface SiteSettingValues {
  readonly siteName: string
  /** Shown to everybody; empty: no notice. */
  readonly notice: string
  /** `open`: everybody may register. */
  readonly registration: 'off' | 'open'
  /** Domains of email addresses that may register; empty: all domains. */
  readonly allowedDomains: readonly string[]
  /** Who may invite people: admins and owners, or also managers of accounts. */
  readonly invitations: 'admins' | 'managers'
  /** The tier of keys in the personal account of a new person. */
  readonly defaultTier: string
  /** Credit for each person who registers. */
  readonly startingCredit: string
  /** How long call records are kept; 0: forever. */
  readonly retentionDays: number
}

export type SiteDefaults = Omit<SiteSettingValues, 'siteName'>

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

export class SiteSettings {
  readonly #reader: Pick<Reader, 'setting'>
  readonly #defaults: SiteSettingValues
  readonly #inTurn = buildWriteQueue()
  #current: SiteSettingValues

  private constructor(reader: Pick<Reader, 'setting'>, siteName: string) {
    this.#reader = reader
    this.#defaults = { siteName, ...siteDefaults }
    this.#current = this.#defaults
  }

  static async open(reader: Pick<Reader, 'setting'>, siteName: string): Promise<SiteSettings> {
    const site = new SiteSettings(reader, siteName)
    await site.renew()
    return site
  }

  get current(): SiteSettingValues {
    return this.#current
  }

  /** Reads the settings again after a change has been written. An older reading never replaces a newer one. */
  renew(): Promise<void> {
    return this.#inTurn(async () => {
      const stored = JSON.parse((await this.#reader.setting(ROW)) ?? '{}') as Partial<SiteSettingValues>
      this.#current = { ...this.#defaults, ...stored }
    })
  }
}
