// The current settings of the site: the values that the owner has set, and defaults for the others.

import type { Reader } from '../../store/engine/reader.ts'
import type { Inviters } from '../../store/people/invitation-rows.ts'
import { INVITERS_DEFAULT, SITE_SETTING } from '../../store/people/invitation-rows.ts'
import { DEFAULT_TIER } from '../../store/rules/tier-operations.ts'
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
  readonly invitations: Inviters
  /** The tier of keys in the personal account of a new person. */
  readonly defaultTier: string
  /** Credit for each person who registers. */
  readonly startingCredit: string
  /** How long call records are kept; 0: forever. */
  readonly retentionDays: number
  /** A PNG image, as a data: URL. */
  readonly logo: string | null
  /** The hue of the console's accent colour, in degrees. */
  readonly accentHue: number | null
  /** Where people ask for help: an https: or mailto: address. */
  readonly supportUrl: string | null
  /** How customers pay, as plain text in each language; null: nothing is shown. */
  readonly howToPay: HowToPay | null
  /** Null: the language of the browser. */
  readonly defaultLanguage: SiteLanguage | null
  /** The IANA time zone in which the site reports days; null: the zone of the reader. */
  readonly reportingZone: string | null
}

export const siteLanguages = ['en', 'zh'] as const
export type SiteLanguage = (typeof siteLanguages)[number]
export type HowToPay = Readonly<Record<SiteLanguage, string>>

/** What everybody may know about the site. */
export interface SiteInfo
  extends Pick<
    SiteSettingValues,
    'logo' | 'accentHue' | 'supportUrl' | 'howToPay' | 'defaultLanguage' | 'reportingZone'
  > {
  readonly name: string
  readonly notice: string | null
  /** True if everybody may register. */
  readonly registration: boolean
  /** The version of Weir. */
  readonly version: string
}

export function siteInfo(values: SiteSettingValues, version: string): SiteInfo {
  const { siteName, notice, registration, logo, accentHue, supportUrl, howToPay, defaultLanguage, reportingZone } =
    values
  const look = { logo, accentHue, supportUrl, howToPay, defaultLanguage, reportingZone }
  return { name: siteName, notice: notice || null, registration: registration === 'open', ...look, version }
}

export type SiteDefaults = Omit<SiteSettingValues, 'siteName'>

export const siteDefaults: SiteDefaults = {
  notice: '',
  registration: 'off',
  allowedDomains: [],
  invitations: INVITERS_DEFAULT,
  defaultTier: DEFAULT_TIER,
  startingCredit: '0',
  retentionDays: 0,
  logo: null,
  accentHue: null,
  supportUrl: null,
  howToPay: null,
  defaultLanguage: null,
  reportingZone: null,
}

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
      const stored = JSON.parse((await this.#reader.setting(SITE_SETTING)) ?? '{}') as Partial<SiteSettingValues>
      this.#current = { ...this.#defaults, ...stored }
    })
  }
}
