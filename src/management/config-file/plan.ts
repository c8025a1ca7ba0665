// Compares a configuration file with a gateway. The result is a list of changes; nothing is changed here.

import { isDeepStrictEqual } from 'node:util'
import type { Secret } from '../../base/secrets/secret.ts'
import { checkAliases } from '../../routing/model-aliases.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import type { KnownProviders, Report } from './check-references.ts'
import {
  checkChannel,
  checkLimitEntry,
  checkModelNames,
  checkPrice,
  checkPriceModel,
  checkWebhook,
  inOrderOfUse,
  References,
  readProviders,
  reportTo,
  unknownName,
} from './check-references.ts'
import { ConfigFileError } from './config-file-error.ts'
import type { ListName, SecretReference } from './file-schema.ts'
import { maskChanges } from './masked-values.ts'
import type { ConfigFile, FileEntry } from './read-file.ts'
import type { Fields, ManagementClient } from './requests.ts'
import type { SecretSource } from './secret-source.ts'
import { readSecret, SecretProblem } from './secret-source.ts'
import type { ApplyContext, Current, EntryChanges, Subject, Wanted } from './subject.ts'
import { referenceText } from './subject.ts'
import { EntryProblem, subjects } from './subjects.ts'

export interface PlannedChange {
  readonly action: 'create' | 'change' | 'remove'
  readonly noun: string
  readonly label: string
  /** The fields that change; of something new, those that the file has. What may be a secret is masked. */
  readonly fields: EntryChanges
  /** Where the file says so: `weir.yaml:12`. */
  readonly place: string
  /** What a removal does, if it does not simply remove. */
  readonly removal?: string | undefined
  /** It disables a channel. */
  readonly isLate?: boolean
  run(context: ApplyContext): Promise<Fields>
}

export interface Plan {
  readonly changes: readonly PlannedChange[]
  readonly warnings: readonly string[]
  /** What the gateway has of the file already, by path below /api/web. */
  readonly described: readonly string[]
}

export interface PlanParts {
  readonly client: ManagementClient
  readonly file: ConfigFile
  /** Removes what the lists of the file do not have. */
  readonly prune: boolean
  readonly secrets: SecretSource
  /** The gateway runs elsewhere. Only the operator of its own machine may set where its secrets come from. */
  readonly isRemote?: boolean
  nowMs(): number
}

/** Throws a ConfigFileError with all problems that were found. */
export async function buildPlan(parts: PlanParts): Promise<Plan> {
  const builder = new PlanBuilder(parts)
  return await builder.build()
}

/** An entry, and what it describes on the gateway, if that exists. */
interface Pair {
  readonly wanted: Wanted
  readonly current: Current | undefined
}

class PlanBuilder {
  readonly #parts: PlanParts
  readonly #problems: string[] = []
  readonly #warnings: string[] = []
  readonly #report: Report
  readonly #references: References
  /** What the gateway has, by list. */
  readonly #known = new Map<ListName, Promise<readonly Current[]>>()
  #providers: KnownProviders = { before: new Map(), after: new Map() }

  constructor(parts: PlanParts) {
    this.#parts = parts
    this.#report = reportTo(parts.file, this.#problems)
    this.#references = new References(parts.client)
  }

  async build(): Promise<Plan> {
    const { file, client } = this.#parts
    const lists: readonly ListName[] = ['providers', 'channels', 'modelNames', 'prices']
    if (lists.some(list => file.entries(list) !== undefined)) {
      this.#providers = await readProviders(client, file, this.#report)
    }
    const pairs = new Map<Subject, readonly Pair[]>()
    for (const subject of subjects) pairs.set(subject, await this.#pairsOf(subject))
    await this.#checkAll(pairs)
    const writes = new Map(
      [...pairs].map(([subject, some]) => [subject, some.flatMap(pair => this.#writeOf(subject, pair))]),
    )
    const settings = await this.#settingsChange()
    const removals = await this.#removals(pairs)
    if (this.#problems.length > 0) throw new ConfigFileError([...new Set(this.#problems)].toSorted(byLine))
    const ordered = [...writes].flatMap(([{ list }, changes]) => {
      // The settings may let people register, so the limits come before them.
      if (list === 'prices') return [...changes, ...settings]
      // A name that only disabled channels serve is refused, so channels are disabled after the names are set.
      if (list === 'modelNames') return [...changes, ...lateOf(writes)]
      return changes.filter(({ isLate }) => !isLate)
    })
    return {
      changes: [...removals.first, ...ordered, ...removals.last],
      warnings: this.#warnings,
      described: this.#described(pairs),
    }
  }

  #described(pairs: ReadonlyMap<Subject, readonly Pair[]>): readonly string[] {
    const paths = [...pairs.values()].flat().flatMap(({ current }) => (current === undefined ? [] : [current.path]))
    return [
      ...paths.map(path => path.slice('/api/web/'.length)),
      ...Object.keys(this.#parts.file.settings).map(name => `settings/${name}`),
    ]
  }

  #read(subject: Subject): Promise<readonly Current[]> {
    const known = this.#known.get(subject.list) ?? subject.read(this.#parts.client)
    this.#known.set(subject.list, known)
    return known
  }

  async #pairsOf(subject: Subject): Promise<readonly Pair[]> {
    const seen = new Map<string, FileEntry>()
    const pairs: Pair[] = []
    for (const entry of this.#parts.file.entries(subject.list) ?? []) {
      const pair = await this.#pairOf(subject, entry)
      if (pair === undefined) continue
      const first = seen.get(pair.wanted.id)
      if (first !== undefined) {
        const text = `this ${subject.noun} is described twice: also in ${subject.list}[${first.index}]. Describe it once.`
        this.#report(entry, [], text)
      }
      seen.set(pair.wanted.id, entry)
      pairs.push(pair)
    }
    return subject.list === 'modelNames' ? inOrderOfUse(pairs, ({ wanted }) => routeOf(wanted.fields)) : pairs
  }

  /** Undefined after a problem was reported. */
  async #pairOf(subject: Subject, entry: FileEntry): Promise<Pair | undefined> {
    if (subject.list === 'prices' && !checkPrice(entry, this.#report)) return undefined
    const { fields, isResolved } = await this.#resolve(subject, subject.complete(entry.fields), entry)
    // The other fields of an entry with a problem are still checked.
    const current = isResolved ? await this.#find(subject, fields, entry) : undefined
    const id = current?.id ?? subject.idOf(fields)
    const label = this.#labelOf(subject, fields)
    if (subject.list === 'accounts') this.#references.addAccount(id, entry.fields)
    if (subject.list === 'keys') this.#references.addKey(id, entry.fields, label)
    if (subject.list === 'environmentChannels' && current === undefined) {
      const known = (await this.#read(subject)).map(channel => channel.id)
      this.#report(entry, ['id'], unknownName('channel of the environment', id, known))
      return undefined
    }
    return { wanted: { entry, id, label, fields }, current }
  }

  /** With the names of accounts and keys, and not their ids. */
  #labelOf(subject: Subject, fields: Fields): string {
    const [account, key] = [this.#references.labelOf(fields.account), this.#references.labelOf(fields.key)]
    const label = subject.labelOf({ ...fields, account, key })
    return subject.list === 'keys' ? `${String(account)}/${label}` : label
  }

  /** Replaces the names of accounts and keys by their ids, those that exist. */
  async #resolve(subject: Subject, fields: Fields, entry: FileEntry) {
    if (!['keys', 'limits', 'webhooks'].includes(subject.list)) return { fields, isResolved: true }
    let isResolved = true
    const resolved: Record<string, unknown> = { ...fields }
    for (const name of ['account', 'key'] as const) {
      if (typeof fields[name] !== 'string') continue
      const token = await this.#references[name](fields[name], entry, this.#report)
      if (token === undefined) isResolved = false
      else resolved[name] = token
    }
    return { fields: resolved, isResolved }
  }

  /** What the gateway has of the entry. Undefined also after a problem was reported. */
  async #find(subject: Subject, fields: Fields, entry: FileEntry): Promise<Current | undefined> {
    if (subject.find === undefined) {
      const id = subject.idOf(fields)
      return (await this.#read(subject)).find(current => current.id === id)
    }
    try {
      return await subject.find(this.#parts.client, fields)
    } catch (fault) {
      if (!(fault instanceof EntryProblem)) throw fault
      this.#report(entry, [entry.fields.id === undefined ? 'name' : 'id'], fault.message)
      return undefined
    }
  }

  async #checkAll(pairs: ReadonlyMap<Subject, readonly Pair[]>): Promise<void> {
    const of = (list: ListName): readonly Pair[] => [...pairs].find(([subject]) => subject.list === list)?.[1] ?? []
    await this.#checkTiers(of)
    for (const { wanted } of of('channels')) checkChannel(wanted.entry, this.#providers.after, this.#report)
    for (const { wanted } of of('prices')) checkPriceModel(wanted.entry, this.#providers.after, this.#report)
    for (const { wanted } of of('limits')) checkLimitEntry(wanted.entry, wanted.fields, this.#report)
    for (const { wanted } of of('webhooks')) checkWebhook(wanted.entry, this.#report)
    for (const { wanted, current } of of('keys')) this.#checkExpiry(wanted, current)
    const names = of('modelNames')
    if (names.length === 0) return
    const unchanged = names.filter(({ wanted, current }) => isDeepStrictEqual(wanted.fields, current?.fields))
    checkModelNames(
      {
        entries: names.map(({ wanted }) => wanted.entry),
        rows: names.map(({ wanted }) => routeOf(wanted.fields)),
        others: this.#parts.prune ? [] : await this.#otherNames(names),
        unchanged: new Set(unchanged.map(({ wanted }) => wanted.id)),
        providers: this.#providers.after,
      },
      this.#report,
      reportTo(this.#parts.file, this.#warnings),
    )
  }

  /** The model names of the gateway that the file does not have. */
  async #otherNames(names: readonly Pair[]): Promise<readonly RouteRow[]> {
    const own = new Set(names.map(({ wanted }) => wanted.id))
    const subject = subjects.find(({ list }) => list === 'modelNames')!
    return (await this.#read(subject)).filter(({ id }) => !own.has(id)).map(({ fields }) => routeOf(fields))
  }

  async #checkTiers(of: (list: ListName) => readonly Pair[]): Promise<void> {
    const { file, prune } = this.#parts
    const subject = subjects.find(({ list }) => list === 'tiers')!
    const isPruned = prune && file.entries('tiers') !== undefined
    const stays = ({ isPermanent }: Current): boolean => !isPruned || isPermanent === true
    const known = new Set([
      ...of('tiers').map(({ wanted }) => wanted.id),
      ...(await this.#read(subject)).filter(stays).map(({ id }) => id),
    ])
    for (const list of ['accounts', 'keys', 'limits'] as const) {
      for (const { wanted } of of(list)) {
        const { tier } = wanted.fields
        if (typeof tier === 'string' && !known.has(tier)) {
          this.#report(wanted.entry, ['tier'], unknownName('tier', tier, known))
        }
      }
    }
    const { defaultTier } = file.settings
    if (typeof defaultTier === 'string' && !known.has(defaultTier)) {
      this.#problems.push(file.problemAt(['settings', 'defaultTier'], unknownName('tier', defaultTier, known)))
    }
  }

  #checkExpiry({ entry, fields }: Wanted, current: Current | undefined): void {
    const { expires } = fields
    if (typeof expires !== 'string' || expires === current?.fields.expires) return
    if (Date.parse(expires) <= this.#parts.nowMs()) this.#report(entry, ['expires'], 'it must be in the future.')
  }

  /** The change that makes the gateway have what the entry describes; none where it has it already. */
  #writeOf(subject: Subject, { wanted, current }: Pair): readonly PlannedChange[] {
    const { secret, fields } = this.#secretOf(subject, wanted, current)
    const complete = { ...wanted, fields }
    const place = this.#parts.file.problemAt([subject.list, wanted.entry.index], '').split(': ')[0]!
    const isLate = isChannels(subject) && fields.disabled === true
    const about = { noun: subject.noun, label: wanted.label, place, isLate }
    if (current === undefined) {
      const changes = mapChanges(fields, value => [undefined, value])
      const written = mapChanges(wanted.entry.fields, (_, name) => [undefined, fields[name]])
      const run = (context: ApplyContext): Promise<Fields> =>
        subject.create(context, { wanted: complete, changes, secret })
      return [{ action: 'create', ...about, fields: maskChanges(subject.list, written), run }]
    }
    const changes = this.#changesOf(subject, complete, current)
    if (Object.keys(changes).length === 0) return []
    const needsSecret = secretNames(subject).some(name => name in changes)
    const mustSend = needsSecret || this.#isMoved(subject, fields)
    if (mustSend && secret === undefined && current.fields[subject.secret!.field] !== null) {
      const text = 'the address changes, so the credential must be sent again, but it is not there. Set it.'
      this.#report(wanted.entry, [subject.secret!.field], text)
    }
    const run = (context: ApplyContext): Promise<Fields> =>
      subject.change(context, current, { wanted: complete, changes, secret: mustSend ? secret : undefined })
    return [{ action: 'change', ...about, fields: maskChanges(subject.list, changes), run }]
  }

  #changesOf(subject: Subject, { entry, fields }: Wanted, current: Current): EntryChanges {
    // A provider has the fields of its file; the fields of all other entries are complete.
    const names = new Set([
      ...Object.keys(fields),
      ...(subject.list === 'providers' ? Object.keys(current.fields) : []),
    ])
    const changed = [...names].filter(name => !isDeepStrictEqual(fields[name], current.fields[name]))
    for (const name of changed.filter(field => subject.fixed.includes(field) && entry.fields[field] !== undefined)) {
      const before = String(current.fields[name])
      this.#report(entry, [name], `it cannot be changed. The ${subject.noun} has: ${before}.`)
    }
    const changes = changed.filter(name => !subject.fixed.includes(name))
    const entries = changes.map(name => [name, [current.fields[name], fields[name]]] as const)
    const isMoved = subject.secret !== undefined && this.#isMoved(subject, fields)
    const field = subject.secret?.field ?? ''
    return Object.fromEntries([
      ...entries,
      ...(isMoved ? [[field, [current.fields[field], fields[field]]] as const] : []),
    ])
  }

  /** Whether the address of the provider changes in the same file: that removes the credentials of its channels. */
  #isMoved({ list }: Subject, { provider, baseUrl }: Fields): boolean {
    if (list !== 'channels' || baseUrl !== null) return false
    const { before, after } = this.#providers
    const [old, now] = [before.get(String(provider)), after.get(String(provider))]
    return old !== undefined && now !== undefined && old.baseUrl !== now.baseUrl
  }

  /** The secret of an entry, and its fields with a mark of the secret in place of the reference. */
  #secretOf(subject: Subject, { entry, fields }: Wanted, current: Current | undefined): SecretFields {
    if (subject.secret === undefined) return { secret: undefined, fields }
    const { field, from, mark, problemOf } = subject.secret
    const reference = fields[field] as SecretReference | undefined
    const kept = { ...fields, [field]: current?.fields[field] ?? null, [from]: current?.fields[from] ?? null }
    if (reference === undefined) return { secret: undefined, fields: kept }
    const secret = this.#readSecret(reference, entry, field)
    if (secret !== undefined) {
      const problem = problemOf(secret)
      if (problem !== undefined) this.#report(entry, [field], problem)
      const origin = this.#parts.isRemote ? current?.fields[from] : referenceText(reference)
      return { secret, fields: { ...fields, [field]: mark(fields, secret), [from]: origin } }
    }
    const missing = reference.env === undefined ? `the file ${reference.file}` : `the variable ${reference.env}`
    if (kept[field] === null) {
      this.#report(entry, [field], `${missing} does not exist or is empty. Set it to the secret.`)
    } else {
      const place = this.#parts.file.problemAt([subject.list, entry.index, field], '').split(': ')[0]!
      this.#warnings.push(`${place}: ${missing} does not exist, so the ${subject.noun} keeps its ${field}.`)
    }
    return { secret: undefined, fields: kept }
  }

  #readSecret(reference: SecretReference, entry: FileEntry, field: string): Secret | undefined {
    try {
      return readSecret(reference, this.#parts.secrets)
    } catch (fault) {
      if (!(fault instanceof SecretProblem)) throw fault
      this.#report(entry, [field], `${fault.message}.`)
      return undefined
    }
  }

  async #settingsChange(): Promise<readonly PlannedChange[]> {
    const { file, client } = this.#parts
    const given = Object.entries(file.settings).filter(([, value]) => value !== undefined)
    if (given.length === 0) return []
    const current = await client.get('/api/web/settings')
    const changed = given.filter(([name, value]) => !isDeepStrictEqual(value, current[name]))
    if (changed.length === 0) return []
    return [
      {
        action: 'change',
        noun: 'settings',
        label: '',
        place: file.problemAt(['settings'], '').split(': ')[0]!,
        fields: maskChanges(
          'settings',
          mapChanges(Object.fromEntries(changed), (value, name) => [current[name], value]),
        ),
        run: context => context.client('PATCH', '/api/web/settings', Object.fromEntries(changed)),
      },
    ]
  }

  /** What the lists of the file do not have. It is removed last, unless a new model name would make a cycle with it. */
  async #removals(pairs: ReadonlyMap<Subject, readonly Pair[]>) {
    if (!this.#parts.prune) return { first: [], last: [] }
    const first: PlannedChange[] = []
    const last: PlannedChange[] = []
    for (const subject of [...subjects].reverse()) {
      if (this.#parts.file.entries(subject.list) === undefined) continue
      const wanted = new Set(pairs.get(subject)!.map(({ current }) => current?.path))
      const left: Current[] = []
      for (const current of await this.#read(subject)) {
        if (!wanted.has(current.path) && !(await isLeftOut(subject, current))) left.push(current)
      }
      const place = subject.list === 'modelNames' && this.#wouldCircle(pairs.get(subject)!, left) ? first : last
      place.push(...left.flatMap(current => this.#removalOf(subject, current)))
    }
    return { first, last }
  }

  #removalOf(subject: Subject, current: Current): readonly PlannedChange[] {
    const { noun, remove, removal } = subject
    if (remove === undefined || current.isPermanent) {
      this.#warnings.push(`The ${noun} ${current.label} (${current.id}) is not in the file, but it cannot be removed.`)
      return []
    }
    // A file with keys may give them another tier.
    if (current.inUse !== undefined && this.#parts.file.entries('keys') === undefined) {
      const text = `--prune would remove the ${noun} ${current.label}, but ${current.inUse}. Add it to the file.`
      this.#problems.push(`${this.#parts.file.name}: ${text}`)
    }
    const label = this.#labelOf(subject, { ...current.fields, ...current.names })
    const about = { noun, label, place: this.#parts.file.name, removal }
    return [{ action: 'remove', ...about, fields: {}, run: ({ client }) => remove(client, current) }]
  }

  #wouldCircle(pairs: readonly Pair[], left: readonly Current[]): boolean {
    try {
      checkAliases([...pairs.map(({ wanted }) => wanted), ...left].map(({ fields }) => routeOf(fields)))
      return false
    } catch {
      return true
    }
  }
}

interface SecretFields {
  readonly secret: Secret | undefined
  readonly fields: Fields
}

/** An export does not have it, so --prune must not take it for something that was removed from the file. */
const isLeftOut = async (subject: Subject, current: Current): Promise<boolean> =>
  isDefault(subject, current) || (await current.leftOut?.()) !== undefined

/** A channel of the environment whose settings are the defaults is the same as one that no file describes. */
export const isDefault = ({ list, complete }: Subject, { fields }: Current): boolean =>
  list === 'environmentChannels' && isDeepStrictEqual(complete({ id: fields.id }), fields)

const isChannels = ({ list }: Subject): boolean => list === 'channels' || list === 'environmentChannels'

const lateOf = (writes: ReadonlyMap<Subject, readonly PlannedChange[]>): readonly PlannedChange[] =>
  [...writes.values()].flat().filter(({ isLate }) => isLate)

const secretNames = ({ secret }: Subject): readonly string[] =>
  secret === undefined ? [] : [secret.field, secret.from, ...secret.boundTo]

const routeOf = (fields: Fields): RouteRow => fields as unknown as RouteRow

const byLine = (one: string, other: string): number => lineIn(one) - lineIn(other)
const lineIn = (problem: string): number => Number(/:(\d+): /.exec(problem)?.[1] ?? 0)

function mapChanges(
  fields: Fields,
  change: (value: unknown, name: string) => readonly [unknown, unknown],
): EntryChanges {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, change(value, name)]])),
  )
}
