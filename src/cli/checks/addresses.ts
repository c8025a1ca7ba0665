// Tries the base URLs that the operator has set, by asking for the list of models: a wrong path is found here and not
// by the first caller.

import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import type { Config } from '../../config.ts'
import { openClient } from '../../http/client/send-request.ts'
import type { AskWhole } from '../../pipeline/attempt/upstream-query.ts'
import { buildAskWhole, Unanswered } from '../../pipeline/attempt/upstream-query.ts'
import { protocolNamed } from '../../protocols/list.ts'
import type { ModelListing } from '../../protocols/model-listing.ts'
import { modelListing } from '../../protocols/model-listing.ts'
import { defaultPath } from '../../upstreams/base-url.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import type { Trouble } from './problem.ts'
import { note, problem } from './problem.ts'

const ANSWER_MS_MAX = 3_000

/** Ways to sign that need nothing but the key. */
const SIMPLE = /^(none|bearer|api-key|x-api-key|x-goog-api-key)$/

/** One base URL to be tried. */
interface Tried {
  readonly provider: Provider
  readonly channel: Channel
  readonly listing: ModelListing
  /** As it is set. */
  readonly given: string
}

export async function checkAddresses({ env }: Pick<Config, 'env'>, catalogue: Catalogue): Promise<readonly Trouble[]> {
  const tried = [...catalogue.providers.values()].flatMap((provider): readonly Tried[] => {
    const given = env[provider.baseUrlEnv]?.trim()
    const [channel] = catalogue.all().filter(({ providerId }) => providerId === provider.id)
    const listing = modelListing(provider.speaks)
    const isSimple = listing !== undefined && SIMPLE.test(provider.sign[listing.dialect] ?? '')
    return given && channel && isSimple ? [{ provider, channel, listing, given }] : []
  })
  if (tried.length === 0) return []
  const client = openClient()
  try {
    const ask = buildAskWhole(client.send, new Deadlines(() => performance.now()))
    const found = await Promise.all(tried.map(one => tryAddress(ask, one)))
    return found.flat()
  } finally {
    client.close()
  }
}

/** `list`: it tells its models there. A number: the status of another answer. A text: why there was no answer. */
type Answered = 'list' | 'other' | number | { readonly fault: string }

async function askList(ask: AskWhole, { provider, channel, listing }: Tried, baseUrl: string): Promise<Answered> {
  const { dialect } = listing
  // A request may go nowhere but below the address of its channel.
  const there = { ...channel, baseUrl }
  const asking = { provider, channel: there, dialect, bytesMax: bounds.modelListBytesMax, msMax: ANSWER_MS_MAX }
  const headers = { 'accept': 'application/json', 'accept-encoding': 'identity', 'user-agent': 'weir' }
  try {
    const { status, body } = await ask(asking, {
      method: 'GET',
      url: baseUrl + listing.path(),
      headers: { ...headers, ...protocolNamed(dialect)?.headers },
      body: new Uint8Array(),
    })
    if (status !== 200) return status
    return isList(listing, body) ? 'list' : 'other'
  } catch (fault) {
    if (!(fault instanceof Unanswered)) throw fault
    return { fault: fault.message.replace(`${channel.id}: `, '') }
  }
}

function isList(listing: ModelListing, body: Buffer): boolean {
  try {
    return listing.read(JSON.parse(body.toString('utf8'))) !== undefined
  } catch {
    return false
  }
}

async function tryAddress(ask: AskWhole, tried: Tried): Promise<readonly Trouble[]> {
  const { provider, channel, given } = tried
  const { baseUrlEnv, name, keyEnv } = provider
  const { baseUrl } = channel
  const isChanged = given.replace(/\/+$/, '') !== baseUrl
  const means = `Calls of ${name} go to ${baseUrl}, which is what ${given} means.`
  const told = isChanged ? [note(baseUrlEnv, means, '')] : []
  const answered = await askList(ask, tried, baseUrl)
  if (answered === 'list') return told
  if (typeof answered === 'object') {
    const says = `Nothing answers at ${baseUrl}: ${answered.fault}.`
    return [note(baseUrlEnv, says, `Start the server of ${name}, or correct ${baseUrlEnv}.`)]
  }
  if (answered === 401 || answered === 403) {
    return [...told, problem(keyEnv, `${baseUrl} refuses this key (${answered}).`, `Correct ${keyEnv}.`)]
  }
  const says = `${baseUrl} ${answered === 'other' ? 'answers with no list of models' : `answers ${answered}`}.`
  if (answered !== 'other' && answered !== 404 && answered !== 405) {
    return [...told, note(baseUrlEnv, says, `Look at what the server of ${name} says.`)]
  }
  const right = await findRight(ask, tried)
  return [right === undefined ? unsure(tried, says) : misplaced(tried, says, right)]
}

/** Another base URL at the same server that tells its models. */
async function findRight(ask: AskWhole, tried: Tried): Promise<string | undefined> {
  const { channel, provider } = tried
  const { origin } = new URL(channel.baseUrl)
  const paths = [defaultPath(provider) ?? '', '/v1', '/api/v1', '/openai/v1', '']
  for (const base of new Set(paths.map(path => origin + path))) {
    if (base !== channel.baseUrl && (await askList(ask, tried, base)) === 'list') return base
  }
  return undefined
}

function misplaced({ provider }: Tried, says: string, right: string): Trouble {
  const { baseUrlEnv, name } = provider
  const isRoot = new URL(right).pathname === '/'
  const own = defaultPath(provider)
  // A server without a path means the provider's own path, so it cannot be said by the variable.
  const remedy =
    isRoot && own !== '' && own !== undefined
      ? `Write a provider file with "baseUrl": "${right}" (docs/providers.md): in ${baseUrlEnv} it would mean ${own}.`
      : `Set ${baseUrlEnv}=${right}`
  return problem(baseUrlEnv, `${says} The interface of ${name} is at ${right}.`, remedy)
}

function unsure({ provider }: Tried, says: string): Trouble {
  const { baseUrlEnv, name, baseUrl } = provider
  const usual = `${name} is usually at ${baseUrl}`
  const remedy = `Some servers have no such list. If calls get 404, correct ${baseUrlEnv}: ${usual}.`
  return note(baseUrlEnv, `${says} Its list of models was asked for.`, remedy)
}
