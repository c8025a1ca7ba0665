// Checks what the entries of a file refer to: tiers, accounts, keys, providers, models and other model names.

import { nearestName } from '../../base/text/nearest-name.ts'
import { maskCredential } from '../../identity/credential-format.ts'
import { checkLimit } from '../../limits/limit-check.ts'
import { checkAliases, compileAliases } from '../../routing/model-aliases.ts'
import type { ChannelSettings, LimitRow, RouteRow } from '../../store/rules/rules.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { ProviderFileError, parseProvider } from '../../upstreams/provider.ts'
import { BadPrice, patternProblem, providerProblem, readPrice } from '../prices/price-changes.ts'
import { checkSetting } from '../services/channel-checks.ts'
import { memberProblem } from '../services/rule-check.ts'
import { accountEvents } from '../webhooks/events.ts'
import type { ConfigFile, FileEntry } from './read-file.ts'
import { refusalText } from './read-file.ts'
import type { Fields, ManagementClient } from './requests.ts'
import { firstPage, listAll } from './requests.ts'
import { EntryProblem, findAccount, findKey } from './subjects.ts'

/** Notes a problem of a field of an entry. */
export type Report = (entry: FileEntry, path: readonly PropertyKey[], text: string) => void

export const reportTo =
  (file: ConfigFile, problems: string[]): Report =>
  ({ list, index }, path, text) =>
    void problems.push(file.problemAt([list, index, ...path], text))

/** "There is no tier "gold". Did you mean "gold2"? Tiers: …" */
export function unknownName(noun: string, name: string, known: Iterable<string>): string {
  const names = [...known].sort()
  const near = nearestName(name, names)
  const list = names.length === 0 ? '' : ` There are: ${names.slice(0, 40).join(', ')}.`
  return `there is no ${noun} "${maskCredential(name)}".${near === undefined ? list : ` Did you mean "${near}"?${list}`}`
}

export interface KnownProviders {
  readonly before: ReadonlyMap<string, Provider>
  /** With those of the file in their place. */
  readonly after: ReadonlyMap<string, Provider>
}

export async function readProviders(
  client: ManagementClient,
  file: ConfigFile,
  report: Report,
): Promise<KnownProviders> {
  const before = new Map<string, Provider>()
  for (const { id } of await listAll(client, '/api/web/providers')) {
    const { definition } = await client.get(`/api/web/providers/${String(id)}`)
    // A definition that an earlier version has stored may be invalid now. Then nothing can refer to it.
    const provider = parseOrReport(definition as Fields, () => {})
    if (provider !== undefined) before.set(provider.id, provider)
  }
  const after = new Map(before)
  for (const entry of file.entries('providers') ?? []) {
    const provider = parseOrReport(entry.fields, text => report(entry, fieldIn(text), `${text}.`))
    if (provider !== undefined) after.set(provider.id, provider)
  }
  return { before, after }
}

/** The field that the message of a provider file begins with. */
const fieldIn = (text: string): readonly string[] => {
  const field = /^"(\w+)"/.exec(text)?.[1] ?? /unknown field "(\w+)"/.exec(text)?.[1]
  return field === undefined ? [] : [field]
}

function parseOrReport(definition: Fields, onProblem: (text: string) => void): Provider | undefined {
  try {
    return parseProvider(JSON.stringify(definition), 'provider')
  } catch (fault) {
    if (!(fault instanceof ProviderFileError)) throw fault
    onProblem(fault.message.replace(/^provider: /, '').replace('the file has', 'the provider has'))
    return undefined
  }
}

export function checkPrice({ fields, ...entry }: FileEntry, report: Report): boolean {
  try {
    readPrice(fields.price)
    return true
  } catch (fault) {
    if (!(fault instanceof BadPrice)) throw fault
    report({ fields, ...entry }, fault.field.split('.'), `${fault.message.replace(/[.?]$/, '')}.`)
    return false
  }
}

export function checkPriceModel(entry: FileEntry, providers: ReadonlyMap<string, Provider>, report: Report): void {
  const model = String(entry.fields.model)
  const problem = patternProblem(model) ?? providerProblem(model, { providers })
  if (problem !== undefined) report(entry, ['model'], `${problem.text}${problem.text.endsWith('?') ? '' : '.'}`)
}

export function checkChannel(entry: FileEntry, providers: ReadonlyMap<string, Provider>, report: Report): void {
  const { provider: id, ...fields } = entry.fields
  const provider = providers.get(String(id))
  if (provider === undefined) return report(entry, ['provider'], unknownName('provider', String(id), providers.keys()))
  if (provider.builtIn) return report(entry, ['provider'], 'this provider is built in and cannot have other channels.')
  const problem = refusalText(() => checkSetting(fields as Partial<ChannelSettings>, provider))
  if (problem !== undefined) report(entry, [], problem)
  if (fields.credential === undefined && !provider.keyless) {
    report(entry, ['credential'], `${provider.name} needs a credential. Write {env: NAME} or {file: path}.`)
  }
}

export function checkLimitEntry(entry: FileEntry, complete: Fields, report: Report): void {
  try {
    checkLimit({ ...(complete as unknown as LimitRow), keyId: null, accountId: null })
  } catch (fault) {
    report(entry, [], (fault as Error).message)
  }
}

/** The gateway also checks that the address is not inside its own network. */
export function checkWebhook(entry: FileEntry, report: Report): void {
  const { account, url, events } = entry.fields
  const { protocol } = URL.canParse(String(url)) ? new URL(String(url)) : { protocol: '' }
  if (!/^https?:$/.test(protocol)) report(entry, ['url'], 'it must be a URL such as https://example.com/hook.')
  const foreign = (events as readonly string[]).findIndex(
    event => !(accountEvents as readonly string[]).includes(event),
  )
  if (typeof account !== 'string' || foreign < 0) return
  report(entry, ['events', foreign], `a webhook of an account can only have: ${accountEvents.join(', ')}.`)
}

export interface ModelNameCheck {
  readonly entries: readonly FileEntry[]
  /** The model names of the file, complete. */
  readonly rows: readonly RouteRow[]
  /** Model names of the gateway that stay. */
  readonly others: readonly RouteRow[]
  /** Names that the gateway has as the file describes them. */
  readonly unchanged: ReadonlySet<string>
  readonly providers: ReadonlyMap<string, Provider>
}

/**
 * Cycles, and members that are neither a model nor a model name. `warn` gets the members of names that do not change: the
 * gateway has accepted them, and a model may be gone since then, or the rules were not as strict.
 */
export function checkModelNames(check: ModelNameCheck, report: Report, warn: Report): void {
  const { entries, rows, others, unchanged, providers } = check
  const all = [...rows, ...others]
  try {
    checkAliases(all)
  } catch (fault) {
    const { message } = fault as Error
    const words = new Set(message.split(/[\s,]+/).map(word => word.replace(/\.$/, '')))
    report(entries.find(({ fields }) => words.has(String(fields.name))) ?? entries[0]!, [], message)
    return
  }
  const names = compileAliases(all)
  rows.forEach((row, at) => {
    const note = unchanged.has(row.name) ? warn : report
    const problem = memberProblem(row, names, { providers })
    if (problem !== undefined) note(entries[at]!, ['members'], problem.text)
    const double = row.members.findIndex(({ model }, i) => row.members.findIndex(other => other.model === model) < i)
    if (double >= 0) note(entries[at]!, ['members', double], `${row.members[double]!.model} is listed twice.`)
  })
}

/** Members before the names that have them, so that each name can be set after those that it needs. */
export function inOrderOfUse<T>(entries: readonly T[], rowOf: (entry: T) => RouteRow): readonly T[] {
  const byName = new Map(entries.map(entry => [rowOf(entry).name, entry]))
  const ordered = new Set<T>()
  const open = new Set<T>()
  function visit(entry: T): void {
    if (ordered.has(entry) || open.has(entry)) return
    open.add(entry)
    for (const { model } of rowOf(entry).members) {
      const next = byName.get(model)
      if (next !== undefined) visit(next)
      // A member may match a pattern among the names.
      else for (const other of entries) if (couldMatch(rowOf(other).name, model)) visit(other)
    }
    ordered.add(entry)
  }
  entries.forEach(visit)
  return [...ordered]
}

const couldMatch = (pattern: string, name: string): boolean => {
  const star = pattern.indexOf('*')
  return star >= 0 && name.startsWith(pattern.slice(0, star)) && name.endsWith(pattern.slice(star + 1))
}

/** Resolves the names of accounts and keys in a file to ids, or to a token of an entry that will be created. */
export class References {
  readonly #client: ManagementClient
  readonly #accounts = new Map<string, string>()
  readonly #keys = new Map<string, string>()
  /** Names for people, by id or token. */
  readonly #labels = new Map<unknown, string>()

  constructor(client: ManagementClient) {
    this.#client = client
  }

  addAccount(token: string, { id, name }: Fields): void {
    this.#accounts.set(String(name), token)
    this.#labels.set(token, String(name))
    if (id !== undefined) this.#accounts.set(String(id), token)
  }

  addKey(token: string, { id, name, account }: Fields, label: string): void {
    this.#labels.set(token, label)
    this.#keys.set(`${String(account)}/${String(name)}`, token)
    this.#keys.set(label, token)
    if (id !== undefined) this.#keys.set(String(id), token)
  }

  /** The name of an account or a key, if the file has it. */
  labelOf = (token: unknown): unknown => this.#labels.get(token) ?? token

  /** Undefined after a problem was reported. */
  async account(written: string, entry: FileEntry, report: Report): Promise<string | undefined> {
    const known = this.#accounts.get(written)
    if (known !== undefined) return known
    try {
      const wanted = /^acc_[0-9a-z]{11}$/.test(written) ? { id: written } : { name: written }
      const found = await findAccount(this.#client, wanted)
      if (found !== undefined) {
        this.#accounts.set(written, String(found.id))
        return String(found.id)
      }
      const teams = await firstPage(this.#client, '/api/web/accounts', { type: 'team' })
      const names = new Set([...this.#accounts.keys(), ...teams.map(({ name }) => String(name))])
      report(entry, ['account'], unknownName('account', written, names))
    } catch (fault) {
      if (!(fault instanceof EntryProblem)) throw fault
      report(entry, ['account'], fault.message)
    }
    return undefined
  }

  async key(written: string, entry: FileEntry, report: Report): Promise<string | undefined> {
    const known = this.#keys.get(written)
    if (known !== undefined) return known
    const slash = written.indexOf('/')
    const byId = /^key_[0-9a-z]{11}$/.test(written)
    const account = byId || slash < 0 ? undefined : await this.account(written.slice(0, slash), entry, () => {})
    const found = byId
      ? await findKey(this.#client, { id: written })
      : account?.startsWith('acc_') && (await findKey(this.#client, { account, name: written.slice(slash + 1) }))
    if (found) {
      this.#keys.set(written, String(found.id))
      return String(found.id)
    }
    const rows = account?.startsWith('acc_') ? await firstPage(this.#client, '/api/web/keys', { account }) : []
    const others = rows.filter(({ state }) => state !== 'revoked')
    const names = new Set([
      ...this.#keys.keys(),
      ...others.map(({ name }) => `${written.slice(0, slash)}/${String(name)}`),
    ])
    report(entry, ['key'], `${unknownName('key', written, names)} Write account/name, or an id (key_…).`)
    return undefined
  }
}
