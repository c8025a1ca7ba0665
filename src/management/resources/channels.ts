// Channels: a provider and one credential each, laid down, changed, tried and removed while calls go on.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { By, Seen } from '../../store/audit-log/audited.ts'
import type { ChannelSetting } from '../../store/rules/rules.ts'
import type { Running } from '../live-gateway.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ChannelView } from '../services/channel-views.ts'
import { channelView, channelViews } from '../services/channel-views.ts'
import type { ChangedChannel, ChannelRule } from '../services/channels.ts'
import { changeChannels, createChannels, removeChannels } from '../services/channels.ts'
import { compareModels } from '../services/providers.ts'
import { refusing } from '../web/refusals.ts'
import {
  baseUrl,
  Channel,
  channelId,
  credential,
  name,
  optional,
  providerId,
  rule,
  shared,
  Trial,
  warnings,
} from './channel-shapes.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, listOf, listQuery, nothing } from './endpoint.ts'
import { found, listAnswer, listAsk } from './listing.ts'
import { memoryPage } from './memory-pages.ts'

const params = z.object({ channel: channelId })
const filters = {
  provider: providerId.optional(),
  from: z.enum(['environment', 'stored']).optional(),
  state: z.enum(['enabled', 'disabled', 'unusable', 'gone']).optional(),
  tag: z.string().max(40).optional(),
  health: z.string().max(40).optional(),
  text: z.string().max(100).optional(),
}
type Filters = { readonly [Name in keyof typeof filters]?: string | undefined }

const Changed = z.object({ data: z.array(Channel), warnings })

/** What is not given stays as it is. */
const Change = z.strictObject({
  ...optional(rule),
  ...optional(shared),
  name: name.optional(),
  baseUrl: baseUrl.optional(),
  credential: credential.optional(),
})

const Bulk = z.strictObject({
  channels: z
    .array(z.strictObject({ id: channelId, version: z.number().int().optional() }))
    .max(bounds.channelsAtOnceMax)
    .optional(),
  filter: z.strictObject(filters).optional(),
  change: z.strictObject({ ...optional(rule), ...optional(shared) }),
})

const ids = z.array(z.string()).readonly()
const Models = z.object({ fresh: ids, known: ids, gone: ids, priced: ids })

const admin = { site: 'admin' } as const
const support = { site: 'support' } as const

export function channelEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const showing = buildShow(parts)
  const change: ChangeSome = (by, changes) => refusing(() => parts.inTurn(() => changeChannels(parts, by, changes)))
  const ways = { ...showing, change }
  return [
    ...shownEndpoints(parts, ways),
    ...madeEndpoints(parts, ways),
    ...switchEndpoints(ways),
    ...askingEndpoints(parts),
    bulkEndpoint(parts, ways),
  ]
}

function shownEndpoints(parts: ManagementParts, { show, one }: Ways): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/channels',
      who: support,
      about: 'List the channels: those whose keys are in the environment, and those that are laid down here.',
      query: listQuery(filters, ['id']),
      answer: listOf(Channel),
      async run({ query }) {
        const ask = listAsk(query, null, 'id')
        const page = memoryPage(fitting(channelViews(parts), query), ask, ({ id }) => id)
        return listAnswer({ ...page, rows: await show(page.rows) }, ask, channel => channel)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/channels/{channel}',
      who: support,
      about: 'Show a channel, and how it is.',
      params,
      answer: Channel,
      run: ({ params: { channel } }) => one(channel),
    }),
  ]
}

function madeEndpoints(parts: ManagementParts, { show, one, change }: Ways): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/channels',
      who: admin,
      about: 'Lay channels down, one for each credential. Credentials are never shown again.',
      body: z.strictObject({
        provider: providerId,
        name: name.optional(),
        baseUrl: baseUrl.optional(),
        credentials: z.array(credential).max(bounds.channelsAtOnceMax).default([]),
        ...optional(rule),
        ...optional(shared),
      }),
      answer: Changed,
      status: 201,
      async run({ body: { provider, credentials, name: called, ...body }, by }) {
        const { setting, ...said } = readChange(body)
        const wanted = { ...said, provider, name: called, credentials: credentials.map(text => new Secret(text)) }
        const made = await refusing(() =>
          parts.inTurn(() => createChannels(parts, by, { ...wanted, setting: setting ?? {} })),
        )
        return { body: { data: await show(viewsOf(parts, made.ids)), warnings: made.warnings } }
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/channels/{channel}',
      who: admin,
      about: 'Change a channel. One that goes to another host forgets its credential, unless a new one is given.',
      params,
      body: Change,
      answer: Channel.extend({ warnings }),
      async run({ params: { channel }, body: { credential: text, ...body }, by }) {
        const given = text === undefined ? {} : { credential: new Secret(text) }
        const done = await change(by, [{ channel, version: by.expects, ...readChange(body), ...given }])
        const { body: shown, version } = await one(channel)
        return { body: { ...shown, warnings: done.warnings }, version }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/channels/{channel}',
      who: admin,
      about: 'Remove a channel that was laid down here. Calls under way end on it.',
      params,
      answer: nothing,
      status: 204,
      async run({ params: { channel }, by }) {
        await refusing(() => parts.inTurn(() => removeChannels(parts, by, [channel])))
        return {}
      },
    }),
  ]
}

const bulkEndpoint = (parts: ManagementParts, { show, change }: Ways): WebEndpoint =>
  endpoint({
    method: 'POST',
    path: '/api/web/channels/bulk',
    who: admin,
    about: 'Change many channels, by their ids or by a filter: all of them or none.',
    body: Bulk,
    answer: Changed,
    async run({ body, by }) {
      const chosen = chosenBy(parts, body)
      const { setting, ...said } = readChange(body.change)
      const changes = chosen.map(one => ({ ...one, ...said, ...(setting && { setting }) }))
      const done = await change(by, changes)
      const ids = chosen.map(({ channel }) => channel)
      return { body: { data: await show(viewsOf(parts, ids)), warnings: done.warnings } }
    },
  })

type ChangeSome = (
  by: By & Partial<Seen>,
  changes: readonly ChangedChannel[],
) => Promise<{ readonly warnings: readonly string[] }>

interface Ways extends ReturnType<typeof buildShow> {
  readonly change: ChangeSome
}

function switchEndpoints({ one, change }: Ways): readonly WebEndpoint[] {
  return (['enable', 'disable'] as const).map(verb =>
    endpoint({
      method: 'POST',
      path: `/api/web/channels/{channel}/${verb}`,
      who: admin,
      about: verb === 'enable' ? 'Let a channel take calls.' : 'Give a channel no more calls.',
      params,
      answer: Channel,
      async run({ params: { channel }, by }) {
        await change(by, [{ channel, version: by.expects, disabled: verb === 'disable' }])
        return await one(channel)
      },
    }),
  )
}

/** These ask what only a running gateway knows, or an upstream itself. */
function askingEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const running = (): Running => found(parts.running())
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/test',
      who: admin,
      about: 'Try a channel by a real, tiny call that nobody is billed for, and show what was sent and what came back.',
      params,
      body: z.strictObject({ model: z.string().max(bounds.modelNameCharsMax).optional() }),
      answer: Trial,
      async run({ params: { channel }, body: { model } }) {
        found(channelView(parts, channel))
        return { body: await refusing(() => running().tryChannel(channel, model)) }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/fetch-models',
      who: admin,
      about: 'Ask its upstream which models it has, and hold them against those that are known.',
      params,
      answer: Models,
      async run({ params: { channel } }) {
        const { provider: id } = found(channelView(parts, channel))
        const listed = await refusing(() => running().listModels(channel))
        return { body: compareModels(parts, found(parts.catalogue().providers.get(id)), listed) }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/reset-health',
      who: admin,
      about: 'Forget what closes a channel: its breaker, its limits, a credential that was refused.',
      params,
      answer: nothing,
      status: 204,
      async run({ params: { channel } }) {
        found(channelView(parts, channel))
        running().resetHealth(channel)
        return {}
      },
    }),
  ]
}

/** With who wrote it, and when. */
function buildShow(parts: ManagementParts) {
  async function show(views: readonly ChannelView[]): Promise<z.input<typeof Channel>[]> {
    const notes = await parts.desk.ask('channelNotes', { ids: views.map(({ id }) => id) })
    const byId = new Map(notes.map(note => [note.id, note]))
    return views.map(view => {
      const note = byId.get(view.id)
      const date = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())
      return {
        ...(view as unknown as z.input<typeof Channel>),
        ...{ version: note?.version ?? 0, author: note?.author ?? null },
        ...{ created: date(note?.createdMs), changed: date(note?.changedMs) },
      }
    })
  }
  async function one(id: string): Promise<{ body: z.input<typeof Channel>; version: number }> {
    const [body] = await show([found(channelView(parts, id))])
    return { body: body!, version: body!.version }
  }
  return { show, one }
}

function fitting(views: readonly ChannelView[], asked: Filters): readonly ChannelView[] {
  const { provider, from, state, tag, health, text } = asked
  const words = text?.toLowerCase()
  return views.filter(
    view =>
      (provider === undefined || view.provider === provider) &&
      (from === undefined || view.from === from) &&
      (state === undefined || view.state === state) &&
      (tag === undefined || view.tags.includes(tag)) &&
      (health === undefined || (view.health?.state ?? 'unused') === health) &&
      (words === undefined || `${view.id} ${view.name ?? ''}`.toLowerCase().includes(words)),
  )
}

const viewsOf = (parts: ManagementParts, ids: readonly string[]): readonly ChannelView[] => {
  const wanted = new Set(ids)
  return channelViews(parts).filter(({ id }) => wanted.has(id))
}

interface Chosen {
  readonly channel: string
  readonly version?: number
}

function chosenBy(parts: ManagementParts, { channels, filter }: z.output<typeof Bulk>): readonly Chosen[] {
  if ((channels === undefined) === (filter === undefined)) {
    throw new Refusal('field_invalid', 'bulk', { param: 'channels', hint: 'Name either "channels" or a "filter".' })
  }
  if (filter !== undefined) return fitting(channelViews(parts), filter).map(({ id }) => ({ channel: id }))
  return channels!.map(({ id, version }) => ({ channel: id, ...(version !== undefined && { version }) }))
}

type Given = Partial<z.output<typeof Change>>

/** What is said of any channel, and what one is told that was laid down here. */
function readChange({ headers, parameters, times, name: called, baseUrl: url, ...said }: Given) {
  const told = { headers, parameters, times, name: called, baseUrl: url }
  const given = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined))
  const setting = given as Partial<ChannelSetting>
  const rules = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) as ChannelRule
  return { ...rules, ...(Object.keys(given).length > 0 && { setting }) }
}
