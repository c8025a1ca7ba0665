// Whether what somebody wants of a channel makes sense: its name, headers and fields that it sends
// otherwise than asked, its times. What does not is told in a sentence.

import { bounds } from '../../base/bounds.ts'
import { changeableDialects, isFixed } from '../../protocols/request/fixed-fields.ts'
import type { ChannelSetting, FieldChanges, Parameters } from '../../store/rules/rules.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { parseChannelTimes } from '../../upstreams/timeouts.ts'
import { OperatorError } from '../operator-error.ts'

const refuse = (sentence: string): never => {
  throw new OperatorError(sentence)
}

export function checkSetting(setting: Partial<ChannelSetting>, provider: Provider): void {
  if (setting.name !== undefined) checkName(setting.name)
  if ((setting.baseUrl?.length ?? 0) > bounds.baseUrlCharsMax) refuse('The address is too long.')
  if (setting.headers !== undefined) checkHeaders(setting.headers)
  if (setting.parameters !== undefined) checkParameters(setting.parameters, provider)
  if (setting.times !== undefined) parseChannelTimes(setting.times, problem => refuse(`The times: ${problem}.`))
}

export function checkName(name: string): void {
  const isName = name.trim() === name && name.length > 0 && name.length <= bounds.channelNameCharsMax
  if (!isName || /\p{Cc}/u.test(name)) refuse(`A name has 1 to ${bounds.channelNameCharsMax} visible characters.`)
}

/** Of the connection, of the body, and what we say ourselves of it. */
const OURS = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'transfer-encoding', 'expect', 'te'],
  ...['trailer', 'upgrade', 'keep-alive', 'accept', 'accept-encoding', 'http2-settings', 'proxy-connection'],
])
/** What proves who we are is a credential, and not to be shown to whoever looks at a channel. */
const SECRET = /auth|cookie|secret|token|password|signature|credential|(^|-)key($|-)|apikey|^x-amz-|^x-goog-api/i

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  const names = Object.keys(headers)
  const least = new Set(names.map(name => name.toLowerCase()))
  if (names.length > bounds.channelHeadersMax) refuse(`A channel sends ${bounds.channelHeadersMax} headers at most.`)
  if (least.size < names.length) refuse('A header stands there twice.')
  for (const name of names) {
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name)) refuse('A header has a name that cannot be sent.')
    if (OURS.has(name.toLowerCase())) refuse(`The header ${name} is not a channel's to send.`)
    if (SECRET.test(name)) refuse(`The header ${name} would prove who we are: that is what the credential is for.`)
    if (!isHeaderValue(headers[name]!)) refuse(`The header ${name} has a value that cannot be sent.`)
  }
}

/** One line, and no more than it may have. */
const isHeaderValue = (value: string): boolean =>
  value.length <= bounds.channelHeaderCharsMax && /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/.test(value)

function checkParameters(parameters: Parameters, provider: Provider): void {
  for (const [dialect, changes] of Object.entries(parameters)) {
    if (!changeableDialects.includes(dialect)) refuse(`Nothing can be changed in requests of "${dialect}".`)
    if (provider.speaks[dialect] === undefined) refuse(`${provider.name} does not speak ${dialect}.`)
    checkChanges(dialect, changes)
  }
}

function checkChanges(dialect: string, changes: FieldChanges): void {
  const paths = [...Object.keys(changes.set ?? {}), ...Object.keys(changes.default ?? {}), ...(changes.remove ?? [])]
  if (paths.length > bounds.channelFieldsMax) refuse(`${dialect}: ${bounds.channelFieldsMax} fields at most.`)
  if (JSON.stringify(changes).length > bounds.channelFieldsBytesMax) refuse(`${dialect}: the values are too large.`)
  if (new Set(paths).size < paths.length) refuse(`${dialect}: a field stands there twice.`)
  for (const path of paths) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}(\.[A-Za-z][A-Za-z0-9_]{0,63})?$/.test(path)) {
      refuse(`${dialect}: a field is named like temperature, or reasoning.effort for one inside of another.`)
    }
    if (isFixed(dialect, path)) {
      refuse(`${dialect}: "${path}" is what a call is answered or billed by, and stays as the caller has it.`)
    }
  }
  const outer = paths.filter(path => path.includes('.')).map(path => path.split('.')[0]!)
  const both = outer.find(name => paths.includes(name))
  if (both !== undefined) refuse(`${dialect}: "${both}" is changed as a whole and in part.`)
}
