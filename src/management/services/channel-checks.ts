// Validates the settings of a channel: its name, the headers it adds, the request fields it changes, its timeouts.
// Invalid settings are refused with one sentence.

import { bounds } from '../../base/bounds.ts'
import { refusal } from '../../base/errors.ts'
import { isFixedField, overridableDialects } from '../../protocols/request/fixed-fields.ts'
import type { ChannelParameters, ChannelSettings, FieldChanges } from '../../store/rules/rules.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { parseChannelTimeouts } from '../../upstreams/timeouts.ts'

const refuse = (sentence: string): never => {
  throw refusal('field_invalid', sentence)
}

export function checkSetting(setting: Partial<ChannelSettings>, provider: Provider): void {
  if (setting.name !== undefined) checkName(setting.name)
  if ((setting.baseUrl?.length ?? 0) > bounds.baseUrlCharsMax)
    refuse(`The base URL may have at most ${bounds.baseUrlCharsMax} characters.`)
  if (setting.headers !== undefined) checkHeaders(setting.headers)
  if (setting.parameters !== undefined) checkParameters(setting.parameters, provider)
  if (setting.times !== undefined) parseChannelTimeouts(setting.times, problem => refuse(`Timeouts: ${problem}.`))
}

export function checkName(name: string): void {
  const isValid = name.trim() === name && name.length > 0 && name.length <= bounds.channelNameCharsMax
  if (!isValid || /\p{Cc}/u.test(name))
    refuse(`The name of a channel must have 1 to ${bounds.channelNameCharsMax} characters.`)
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
/** Headers that look like credentials. Credentials are stored encrypted; headers are shown to everybody who may see the channel. */
const SECRET = /auth|cookie|secret|token|password|signature|credential|(^|-)key($|-)|apikey|^x-amz-|^x-goog-api/i

/** Whether the name of a header or of a field says that its value is a credential. */
export const looksLikeCredential = (name: string): boolean => SECRET.test(name)

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  const names = Object.keys(headers)
  const lowerCaseNames = new Set(names.map(name => name.toLowerCase()))
  if (names.length > bounds.channelHeadersMax) refuse(`A channel may add at most ${bounds.channelHeadersMax} headers.`)
  if (lowerCaseNames.size < names.length) refuse('A header is listed twice.')
  for (const name of names) {
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name)) refuse('A header has an invalid name.')
    if (GATEWAY_HEADERS.has(name.toLowerCase()))
      refuse(`The gateway sets the header ${name}; a channel cannot change it.`)
    if (looksLikeCredential(name))
      refuse(`The header ${name} looks like a credential. Set the credential of the channel instead.`)
    if (!isHeaderValue(headers[name]!)) refuse(`The header ${name} has an invalid value.`)
  }
}

/** One line of printable ASCII, not too long. */
const isHeaderValue = (value: string): boolean =>
  value.length <= bounds.channelHeaderCharsMax && /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/.test(value)

function checkParameters(parameters: ChannelParameters, provider: Provider): void {
  for (const [dialect, changes] of Object.entries(parameters)) {
    if (!overridableDialects.includes(dialect)) refuse(`Fields of the dialect "${dialect}" cannot be changed.`)
    if (provider.speaks[dialect] === undefined) refuse(`${provider.name} does not speak ${dialect}.`)
    checkChanges(dialect, changes)
  }
}

function checkChanges(dialect: string, changes: FieldChanges): void {
  const paths = [...Object.keys(changes.set ?? {}), ...Object.keys(changes.default ?? {}), ...(changes.remove ?? [])]
  if (paths.length > bounds.channelFieldsMax)
    refuse(`${dialect}: at most ${bounds.channelFieldsMax} fields can be changed.`)
  if (JSON.stringify(changes).length > bounds.channelFieldsBytesMax) refuse(`${dialect}: the values are too large.`)
  if (new Set(paths).size < paths.length) refuse(`${dialect}: a field is listed twice.`)
  for (const path of paths) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}(\.[A-Za-z][A-Za-z0-9_]{0,63})?$/.test(path)) {
      refuse(`${dialect}: a field must be a name such as temperature, or reasoning.effort for a field of an object.`)
    }
    if (isFixedField(dialect, path)) {
      refuse(`${dialect}: "${path}" cannot be changed, because the answer or the price of a call depends on it.`)
    }
  }
  const outer = paths.filter(path => path.includes('.')).map(path => path.split('.')[0]!)
  const both = outer.find(name => paths.includes(name))
  if (both !== undefined) refuse(`${dialect}: "${both}" is changed both as a whole and in part. Change it only once.`)
}
