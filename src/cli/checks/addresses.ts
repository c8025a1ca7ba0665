// Checks the base URLs that the operator has set: requests the list of models from each. So a wrong path is found here
// and not by the first caller.

import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import type { Config } from '../../config.ts'
import { openHttpClient } from '../../http/client/http-client.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import type { SendUpstreamQuery } from '../../pipeline/attempt/upstream-query.ts'
import { buildSendUpstreamQuery, UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import { findProtocol } from '../../protocols/protocols.ts'
import type { UpstreamModelList } from '../../protocols/upstream-models.ts'
import { findUpstreamModelList } from '../../protocols/upstream-models.ts'
import { defaultPath } from '../../upstreams/base-url.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { fixedHeaders } from '../../upstreams/request-signature.ts'
import { note, problem } from './findings.ts'

const ANSWER_MS_MAX = 3_000

/** Authentication methods that need only the key. */
const SIMPLE = /^(none|bearer|api-key|x-api-key|x-goog-api-key)$/

interface AddressCheck {
  readonly provider: Provider
  readonly channel: Channel
  readonly listing: UpstreamModelList
  /** The value of the environment variable, as the operator wrote it. */
  readonly configured: string
}

export async function checkAddresses(
  { env }: Pick<Config, 'env'>,
  catalogue: Catalogue,
): Promise<readonly CheckFinding[]> {
  const checks = [...catalogue.providers.values()].flatMap((provider): readonly AddressCheck[] => {
    const configured = env[provider.baseUrlEnv]?.trim()
    const [channel] = catalogue.all().filter(({ providerId }) => providerId === provider.id)
    const listing = findUpstreamModelList(provider.speaks)
    const isSimple = listing !== undefined && SIMPLE.test(provider.sign[listing.dialect] ?? '')
    return configured && channel && isSimple ? [{ provider, channel, listing, configured }] : []
  })
  if (checks.length === 0) return []
  const client = openHttpClient()
  try {
    const ask = buildSendUpstreamQuery(client.send, new Deadlines(() => performance.now()))
    const findings = await Promise.all(checks.map(check => checkAddress(ask, check)))
    return findings.flat()
  } finally {
    client.close()
  }
}

/**
 * `list`: a list of models. `other`: status 200 without a list of models. A number: another HTTP status.
 * `fault`: why there was no response.
 */
type ListResponse = 'list' | 'other' | number | { readonly fault: string }

async function requestList(
  ask: SendUpstreamQuery,
  { provider, channel, listing }: AddressCheck,
  baseUrl: string,
): Promise<ListResponse> {
  const { dialect } = listing
  // A request may only go to URLs below the base URL of its channel, so the channel gets the URL that is tried.
  const query = {
    provider,
    channel: { ...channel, baseUrl },
    dialect,
    bytesMax: bounds.modelListBytesMax,
    msMax: ANSWER_MS_MAX,
  }
  const headers = { accept: 'application/json', ...fixedHeaders }
  try {
    const { status, body } = await ask(query, {
      method: 'GET',
      url: baseUrl + listing.path(),
      headers: { ...headers, ...findProtocol(dialect)?.headers },
      body: new Uint8Array(),
    })
    if (status !== 200) return status
    return isList(listing, body) ? 'list' : 'other'
  } catch (fault) {
    if (!(fault instanceof UpstreamQueryFailed)) throw fault
    return { fault: fault.message.replace(`${channel.id}: `, '') }
  }
}

function isList(listing: UpstreamModelList, body: Buffer): boolean {
  try {
    return listing.read(JSON.parse(body.toString('utf8'))) !== undefined
  } catch {
    return false
  }
}

async function checkAddress(ask: SendUpstreamQuery, check: AddressCheck): Promise<readonly CheckFinding[]> {
  const { provider, channel, configured } = check
  const { baseUrlEnv, name, keyEnv } = provider
  const { baseUrl } = channel
  const isChanged = configured.replace(/\/+$/, '') !== baseUrl
  const expansion = `${configured} has no path, so calls to ${name} go to ${baseUrl}.`
  const notes = isChanged ? [note(baseUrlEnv, expansion, '')] : []
  const response = await requestList(ask, check, baseUrl)
  if (response === 'list') return notes
  if (typeof response === 'object') {
    const message = `Nothing answers at ${baseUrl}: ${response.fault}.`
    return [note(baseUrlEnv, message, `Start the server of ${name}, or correct ${baseUrlEnv}.`)]
  }
  if (response === 401 || response === 403) {
    return [...notes, problem(keyEnv, `${baseUrl} refuses this key (status ${response}).`, `Correct ${keyEnv}.`)]
  }
  const answer = response === 'other' ? 'something that is not a list of models' : `status ${response}`
  const message = `A request for the list of models at ${baseUrl} returned ${answer}.`
  if (response !== 'other' && response !== 404 && response !== 405) {
    return [...notes, note(baseUrlEnv, message, `Look at the log of the server of ${name}.`)]
  }
  const working = await findWorkingUrl(ask, check)
  return [working === undefined ? noListFinding(check, message) : wrongUrlFinding(check, message, working)]
}

/** Finds another base URL on the same server that returns a list of models. */
async function findWorkingUrl(ask: SendUpstreamQuery, check: AddressCheck): Promise<string | undefined> {
  const { channel, provider } = check
  const { origin } = new URL(channel.baseUrl)
  const paths = [defaultPath(provider) ?? '', '/v1', '/api/v1', '/openai/v1', '']
  for (const base of new Set(paths.map(path => origin + path))) {
    if (base !== channel.baseUrl && (await requestList(ask, check, base)) === 'list') return base
  }
  return undefined
}

function wrongUrlFinding({ provider }: AddressCheck, message: string, working: string): CheckFinding {
  const { baseUrlEnv, name } = provider
  const isRoot = new URL(working).pathname === '/'
  const providerPath = defaultPath(provider)
  // A URL without a path gets the provider's default path, so the variable cannot express the root of a server.
  const remedy =
    isRoot && providerPath !== '' && providerPath !== undefined
      ? `Write a provider file with "baseUrl": "${working}" (docs/reference/providers.md): ${baseUrlEnv} would add ${providerPath}.`
      : `Set ${baseUrlEnv}=${working}`
  return problem(baseUrlEnv, `${message} The API of ${name} is at ${working}.`, remedy)
}

function noListFinding({ provider }: AddressCheck, message: string): CheckFinding {
  const { baseUrlEnv, name, baseUrl } = provider
  const usual = `${name} is usually at ${baseUrl}`
  const remedy = `Some servers have no list of models. If calls get 404, correct ${baseUrlEnv}: ${usual}.`
  return note(baseUrlEnv, message, remedy)
}
