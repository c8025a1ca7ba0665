// Schemas of how the site presents itself in the console: logo, colour, language, and where to pay and to get help. The
// settings and the start of a page have them in common.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { siteLanguages } from '../services/site-settings.ts'
import { must } from '../web/issue-text.ts'

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const LOGO_PREFIX = 'data:image/png;base64,'

/** Only PNG, by its first bytes: an SVG can contain scripts, and other types are not shown by all browsers. */
function isLogo(text: string): boolean {
  const base64 = text.slice(LOGO_PREFIX.length)
  if (!text.startsWith(LOGO_PREFIX) || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return false
  return Buffer.from(base64, 'base64').subarray(0, PNG.length).equals(PNG)
}

function isSupportUrl(text: string): boolean {
  if (/[\p{Cc}\s]/u.test(text)) return false
  const { protocol, host, username, password, pathname } = URL.parse(text) ?? {}
  if (protocol === 'mailto:') return /^[^@\s]+@[^@\s]+$/.test(pathname ?? '')
  return protocol === 'https:' && host !== '' && username === '' && password === ''
}

/** The name of a time zone; offsets such as +08:00 are none, because they have no summer time. */
function isZone(text: string): boolean {
  if (!/^[A-Za-z]/.test(text)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return true
  } catch {
    return false
  }
}

/** Lines of text, without other control characters. */
const plainText = z
  .string()
  .trim()
  .max(bounds.howToPayCharsMax)
  .refine(text => !/[^\n\P{Cc}]/u.test(text), must('must_have_no_controls'))

export const zone = z.string().max(bounds.zoneCharsMax).refine(isZone, must('must_be_zone'))

export const language = z.enum(siteLanguages)

export const lookFields = {
  logo: z
    .string()
    .max(bounds.logoCharsMax)
    .refine(isLogo, must('must_be_logo', { prefix: LOGO_PREFIX }))
    .nullable()
    .meta({ description: 'A PNG image as a data: URL; null: none', examples: [`${LOGO_PREFIX}iVBORw0KGgo=`] }),
  accentHue: z
    .number()
    .int()
    .min(0)
    .max(359)
    .nullable()
    .meta({ description: 'The hue of the accent colour of the console, in degrees; null: its own' }),
  supportUrl: z
    .string()
    .max(bounds.supportUrlCharsMax)
    .refine(isSupportUrl, must('must_be_support_url'))
    .nullable()
    .meta({ description: 'Where people ask for help; null: not shown', examples: ['mailto:help@example.com'] }),
  howToPay: z
    .strictObject({ en: plainText, zh: plainText })
    .nullable()
    .meta({ description: 'How customers pay, as plain text in each language; null: not shown' }),
  defaultLanguage: language.nullable().meta({ description: 'Null: the language of the browser' }),
  reportingZone: zone.nullable().meta({
    description: 'The time zone (IANA) in which the console shows days; null: the zone of the reader',
    examples: ['Asia/Shanghai'],
  }),
}
