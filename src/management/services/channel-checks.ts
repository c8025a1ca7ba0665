// Validates the settings of a channel: its name, the headers it adds, the request fields it changes, its timeouts.
// Invalid settings are refused with one sentence.

import { bounds } from '../../base/bounds.ts'
import { refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { isFixedField, overridableDialects } from '../../protocols/request/fixed-fields.ts'
import type { ChannelParameters, ChannelSettings, FieldChanges } from '../../store/rules/rules.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { parseChannelTimeouts } from '../../upstreams/timeouts.ts'

const refuse = (field: keyof ChannelSettings, hint: Hint): never => {
  throw refusal('field_invalid', hint, field)
}

export function checkSetting(setting: Partial<ChannelSettings>, provider: Provider): void {
  if (setting.name !== undefined) checkName(setting.name)
  if ((setting.baseUrl?.length ?? 0) > bounds.baseUrlCharsMax)
    refuse('baseUrl', hintOf('channel_base_url_length', { max: bounds.baseUrlCharsMax }))
  if (setting.headers !== undefined) checkHeaders(setting.headers)
  if (setting.parameters !== undefined) checkParameters(setting.parameters, provider)
  if (setting.times !== undefined)
    parseChannelTimeouts(setting.times, problem => refuse('times', hintOf('channel_times', { problem })))
}

export function checkName(name: string): void {
  const isValid = name.trim() === name && name.length > 0 && name.length <= bounds.channelNameCharsMax
  if (!isValid || /\p{Cc}/u.test(name)) refuse('name', hintOf('channel_name', { max: bounds.channelNameCharsMax }))
}

/** Headers that the gateway sets itself: they describe the connection and the body. */
const GATEWAY_HEADERS = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'expect',
  'te',
  'trailer',
  'upgrade',
  'keep-alive',
  'accept',
  'accept-encoding',
  'http2-settings',
  'proxy-connection',
])
/** Headers that look like credentials. Credentials are stored encrypted; headers are shown to all who may see the channel. */
const SECRET = /auth|cookie|secret|token|password|signature|credential|(^|-)key($|-)|apikey|^x-amz-|^x-goog-api/i

/** Whether the name of a header or of a field says that its value is a credential. */
export const looksLikeCredential = (name: string): boolean => SECRET.test(name)

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  const names = Object.keys(headers)
  const lowerCaseNames = new Set(names.map(name => name.toLowerCase()))
  if (names.length > bounds.channelHeadersMax)
    refuse('headers', hintOf('channel_headers_max', { max: bounds.channelHeadersMax }))
  if (lowerCaseNames.size < names.length) refuse('headers', hintOf('channel_header_twice'))
  for (const name of names) {
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name)) refuse('headers', hintOf('channel_header_name'))
    if (GATEWAY_HEADERS.has(name.toLowerCase())) refuse('headers', hintOf('channel_header_ours', { name }))
    if (looksLikeCredential(name)) refuse('headers', hintOf('channel_header_secret', { name }))
    if (!isHeaderValue(headers[name]!)) refuse('headers', hintOf('channel_header_value', { name }))
  }
}

/** One line of printable ASCII, not too long. */
const isHeaderValue = (value: string): boolean =>
  value.length <= bounds.channelHeaderCharsMax && /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/.test(value)

function checkParameters(parameters: ChannelParameters, provider: Provider): void {
  for (const [dialect, changes] of Object.entries(parameters)) {
    if (!overridableDialects.includes(dialect)) refuse('parameters', hintOf('channel_dialect', { dialect }))
    if (provider.speaks[dialect] === undefined)
      refuse('parameters', hintOf('channel_not_spoken', { provider: provider.name, dialect }))
    checkChanges(dialect, changes)
  }
}

function checkChanges(dialect: string, changes: FieldChanges): void {
  const paths = [...Object.keys(changes.set ?? {}), ...Object.keys(changes.default ?? {}), ...(changes.remove ?? [])]
  if (paths.length > bounds.channelFieldsMax)
    refuse('parameters', hintOf('channel_fields_max', { dialect, max: bounds.channelFieldsMax }))
  if (JSON.stringify(changes).length > bounds.channelFieldsBytesMax)
    refuse('parameters', hintOf('channel_fields_large', { dialect }))
  if (new Set(paths).size < paths.length) refuse('parameters', hintOf('channel_field_twice', { dialect }))
  for (const path of paths) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}(\.[A-Za-z][A-Za-z0-9_]{0,63})?$/.test(path)) {
      refuse('parameters', hintOf('channel_field_name', { dialect }))
    }
    if (isFixedField(dialect, path)) {
      refuse('parameters', hintOf('channel_field_fixed', { dialect, field: path }))
    }
  }
  const outer = paths.filter(path => path.includes('.')).map(path => path.split('.')[0]!)
  const both = outer.find(name => paths.includes(name))
  if (both !== undefined) refuse('parameters', hintOf('channel_field_in_part', { dialect, field: both }))
}
