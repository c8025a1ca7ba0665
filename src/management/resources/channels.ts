// Endpoints for channels (a provider and one credential each): create, change, test and remove them while calls go on.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { timeOrNull } from '../../base/time.ts'
import type { AuditActor, ExpectedVersion } from '../../store/audit-log/audited-operations.ts'
import type { ChannelSettings } from '../../store/rules/rules.ts'
import type { LiveGateway } from '../live-gateway.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ChannelView } from '../services/channel-views.ts'
import { channelView, channelViews } from '../services/channel-views.ts'
import type { ChangedChannel, ChannelRule } from '../services/channels.ts'
import { changeChannels, createChannels, moveSettings, removeChannels, resetSettings } from '../services/channels.ts'
import { compareModels } from '../services/providers.ts'
import {
  baseUrl,
  Channel,
  channelId,
  credential,
  name,
  optional,
  providerId,
  proxy,
  rule,
  secretFrom,
  shared,
  Trial,
} from './channel-schemas.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, listOf, listQuery, noContent } from './endpoint.ts'
import { shownWarnings, warnings } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireFound, resourceUnknown } from './list-queries.ts'
import { pageInMemory } from './memory-pages.ts'

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

const Changed = z.object({ data: z.array(Channel), ...warnings })

/** Fields that are absent do not change. */
const Change = z.strictObject({
  ...optional(rule),
  ...optional(shared),
  name: name.optional(),
  baseUrl: baseUrl.optional(),
  credential: credential.optional(),
  credentialFrom: secretFrom.optional(),
  proxy: proxy.optional(),
})

/**
 * An exported file has the reference, and whoever applies the file reads it on a machine of the operator. So an admin who
 * could set it would choose which file or variable of that machine is sent to the address of the channel.
 */
const referenceReserved = { credentialFrom: 'operator' } as const

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
  const readers = buildShow(parts)
  const change: ChangeFunction = (by, changes) => parts.writeQueue(() => changeChannels(parts, by, changes))
  const helpers = { ...readers, change }
  return [
    ...readEndpoints(parts, helpers),
    ...writeEndpoints(parts, helpers),
    ...settingEndpoints(parts, helpers),
    ...switchEndpoints(parts, helpers),
    ...upstreamEndpoints(parts),
    bulkEndpoint(parts, helpers),
  ]
}

function readEndpoints(parts: ManagementParts, { show, one }: ChannelHelpers): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/channels',
      who: support,
      summary: 'List the channels: those whose keys are in the environment, and those that are stored in the database.',
      query: listQuery(filters, ['id']),
      answer: listOf(Channel),
      async run({ query }) {
        const pageQuery = buildListQuery(query, null, 'id')
        const page = pageInMemory(filterViews(channelViews(parts), query), pageQuery, ({ id }) => id)
        return listAnswer({ ...page, rows: await show(page.rows) }, pageQuery, channel => channel)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/channels/{channel}',
      who: support,
      summary: 'Show a channel with its health.',
      params,
      answer: Channel,
      run: ({ params: { channel } }) => one(idOf(parts, channel)),
    }),
  ]
}

function writeEndpoints(parts: ManagementParts, { show, one, change }: ChannelHelpers): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/channels',
      who: admin,
      summary: 'Create channels, one for each credential. Credentials are never shown again.',
      body: z.strictObject({
        provider: providerId,
        name: name.optional(),
        baseUrl: baseUrl.optional(),
        credentials: z.array(credential).max(bounds.channelsAtOnceMax).default([]),
        credentialFrom: secretFrom.optional(),
        ...optional(rule),
        ...optional(shared),
      }),
      reserved: referenceReserved,
      answer: Changed,
      status: 201,
      async run({ body: { provider, credentials, name: channelName, ...body }, by }) {
        const { setting, ...rules } = readChange(body)
        const secrets = credentials.map(text => new Secret(text))
        const wanted = { ...rules, provider, name: channelName, credentials: secrets }
        const created = await parts.writeQueue(() => createChannels(parts, by, { ...wanted, setting: setting ?? {} }))
        return { body: { data: await show(viewsOf(parts, created.ids)), ...shownWarnings(created.warnings) } }
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/channels/{channel}',
      who: admin,
      summary: 'Change a channel. A change of its host removes its credential, unless the request has a new one.',
      params,
      changes: ({ channel }) => ownerOf(parts, channel),
      body: Change,
      // A proxy may stand inside the network of the gateway, which a stolen session must not reach.
      reserved: { proxy: 'operator', ...referenceReserved },
      answer: Channel.extend(warnings),
      async run({ params, body: { credential: text, proxy: newProxy, ...body }, by }) {
        const channel = idOf(parts, params.channel)
        const secrets = {
          ...(text !== undefined && { credential: new Secret(text) }),
          ...(newProxy !== undefined && { proxy: newProxy }),
        }
        const done = await change(by, [{ channel, version: by.expectedVersion, ...readChange(body), ...secrets }])
        const { body: shown, version } = await one(channel)
        return { body: { ...shown, ...shownWarnings(done.warnings) }, version }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/channels/{channel}',
      who: admin,
      summary: 'Remove a channel that is stored in the database. Its running calls finish.',
      params,
      changes: ({ channel }) => ownerOf(parts, channel),
      answer: noContent,
      status: 204,
      async run({ params, by }) {
        await parts.writeQueue(() => removeChannels(parts, by, [idOf(parts, params.channel)]))
        return {}
      },
    }),
  ]
}

/** Settings of a channel whose key was renewed belong to another channel; or to none. */
function settingEndpoints(parts: ManagementParts, { one }: ChannelHelpers): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/move',
      who: admin,
      summary: 'Move the settings of a channel to another channel, for example after its key was renewed.',
      params,
      body: z.strictObject({ to: channelId }),
      changes: ({ channel }, { to }) => ownerOf(parts, channel, to),
      answer: Channel.extend(warnings),
      async run({ params, body, by }) {
        const from = idOf(parts, params.channel)
        const to = idOf(parts, body.to)
        if (channelView(parts, to)?.state === 'gone') throw resourceUnknown()
        const done = await parts.writeQueue(() => moveSettings(parts, by, { from, to }))
        const { body: shown, version } = await one(to)
        return { body: { ...shown, ...shownWarnings(done.warnings) }, version }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/reset',
      who: admin,
      summary: 'Reset the settings of a channel to the defaults. Its credential stays.',
      params,
      changes: ({ channel }) => ownerOf(parts, channel),
      answer: noContent,
      status: 204,
      async run({ params: { channel }, by }) {
        await parts.writeQueue(() => resetSettings(parts, by, idOf(parts, channel)))
        return {}
      },
    }),
  ]
}

/** Also accepts the place of a channel among those of its provider, such as `openai#1`. */
const idOf = ({ catalogue }: ManagementParts, channel: string): string =>
  catalogue().findChannel(channel)?.id ?? channel

const ownerOf = (parts: ManagementParts, ...channels: readonly string[]): readonly string[] =>
  channels.map(channel => `channels/${idOf(parts, channel)}`)

const bulkEndpoint = (parts: ManagementParts, { show, change }: ChannelHelpers): WebEndpoint =>
  endpoint({
    method: 'POST',
    path: '/api/web/channels/bulk',
    who: admin,
    summary: 'Change many channels, by their ids or by a filter: all of them or none.',
    body: Bulk,
    changes: (_, body) => ownerOf(parts, ...selectChannels(parts, body).map(({ channel }) => channel)),
    answer: Changed,
    async run({ body, by }) {
      const chosen = selectChannels(parts, body)
      const { setting, ...rules } = readChange(body.change)
      const changes = chosen.map(channel => ({ ...channel, ...rules, ...(setting && { setting }) }))
      const done = await change(by, changes)
      const ids = chosen.map(({ channel }) => channel)
      return { body: { data: await show(viewsOf(parts, ids)), ...shownWarnings(done.warnings) } }
    },
  })

type ChangeFunction = (
  by: AuditActor & Partial<ExpectedVersion>,
  changes: readonly ChangedChannel[],
) => Promise<{ readonly warnings: readonly Hint[] }>

interface ChannelHelpers extends ReturnType<typeof buildShow> {
  readonly change: ChangeFunction
}

function switchEndpoints(parts: ManagementParts, { one, change }: ChannelHelpers): readonly WebEndpoint[] {
  return (['enable', 'disable'] as const).map(verb =>
    endpoint({
      method: 'POST',
      path: `/api/web/channels/{channel}/${verb}`,
      who: admin,
      summary: verb === 'enable' ? 'Use a channel for calls again.' : 'Send no more calls to a channel.',
      params,
      changes: ({ channel }) => ownerOf(parts, channel),
      answer: Channel,
      async run({ params, by }) {
        const channel = idOf(parts, params.channel)
        await change(by, [{ channel, version: by.expectedVersion, disabled: verb === 'disable' }])
        return await one(channel)
      },
    }),
  )
}

/** Endpoints that need the running gateway or an upstream. */
function upstreamEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  function running(): LiveGateway {
    const gateway = parts.liveGateway()
    if (gateway === undefined) throw refusal('state_unfit', hintOf('gateway_needed'))
    return gateway
  }
  const known = (channel: string): ChannelView => requireFound(channelView(parts, idOf(parts, channel)))
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/test',
      who: admin,
      summary: 'Test a channel with a real, small call that no account pays for. Shows the request and the response.',
      params,
      body: z.strictObject({ model: z.string().max(bounds.modelNameCharsMax).optional() }),
      answer: Trial,
      async run({ params: { channel }, body: { model } }) {
        return { body: await running().testChannel(known(channel).id, model) }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/fetch-models',
      who: admin,
      summary: 'Request the list of models from the upstream and compare it with the known models.',
      params,
      answer: Models,
      async run({ params: { channel } }) {
        const { id, provider } = known(channel)
        const listed = await running().listModels(id)
        return { body: compareModels(parts, requireFound(parts.catalogue().providers.get(provider)), listed) }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/channels/{channel}/reset-health',
      who: admin,
      summary: 'Reset the health of a channel: its circuit breaker, its upstream limits, a refused credential.',
      params,
      answer: noContent,
      status: 204,
      async run({ params: { channel } }) {
        await running().resetHealth(known(channel).id)
        return {}
      },
    }),
  ]
}

/** Adds version, author and dates from the database to the views. */
function buildShow(parts: ManagementParts) {
  async function show(views: readonly ChannelView[]): Promise<z.input<typeof Channel>[]> {
    const rows = await parts.queryWorker.query('channelNotes', { ids: views.map(({ id }) => id) })
    const byId = new Map(rows.map(row => [row.id, row]))
    return views.map(view => {
      const row = byId.get(view.id)
      const date = (ms: number | undefined): string | null => timeOrNull(ms ?? null)
      return {
        ...(view as unknown as z.input<typeof Channel>),
        version: row?.version ?? 0,
        author: row?.author ?? null,
        created: date(row?.createdMs),
        changed: date(row?.changedMs),
      }
    })
  }
  async function one(id: string): Promise<{ body: z.input<typeof Channel>; version: number }> {
    const [body] = await show([requireFound(channelView(parts, id))])
    return { body: body!, version: body!.version }
  }
  return { show, one }
}

function filterViews(views: readonly ChannelView[], filter: Filters): readonly ChannelView[] {
  const { provider, from, state, tag, health, text } = filter
  const search = text?.toLowerCase()
  return views.filter(
    view =>
      (provider === undefined || view.provider === provider) &&
      (from === undefined || view.from === from) &&
      (state === undefined || view.state === state) &&
      (tag === undefined || view.tags.includes(tag)) &&
      (health === undefined || (view.health?.state ?? 'unused') === health) &&
      (search === undefined || `${view.id} ${view.name ?? ''}`.toLowerCase().includes(search)),
  )
}

const viewsOf = (parts: ManagementParts, ids: readonly string[]): readonly ChannelView[] => {
  const wanted = new Set(ids)
  return channelViews(parts).filter(({ id }) => wanted.has(id))
}

interface SelectedChannel {
  readonly channel: string
  readonly version?: number
}

function selectChannels(
  parts: ManagementParts,
  { channels, filter }: z.output<typeof Bulk>,
): readonly SelectedChannel[] {
  if ((channels === undefined) === (filter === undefined)) {
    throw new Refusal('field_invalid', 'bulk', {
      param: 'channels',
      hint: hintOf('channels_or_filter'),
    })
  }
  if (filter !== undefined) return filterViews(channelViews(parts), filter).map(({ id }) => ({ channel: id }))
  return channels!.map(({ id, version }) => ({ channel: id, ...(version !== undefined && { version }) }))
}

/** Separates settings that every channel has from those of channels in the database (`setting`). */
function readChange(change: Partial<Omit<z.output<typeof Change>, 'proxy' | 'credential'>>) {
  const { headers, parameters, times, name: channelName, baseUrl: url, ...others } = change
  const setting: Partial<ChannelSettings> = withoutUndefined({
    headers,
    parameters,
    times,
    name: channelName,
    baseUrl: url,
  })
  const rules = withoutUndefined(others) as ChannelRule
  return { ...rules, ...(Object.keys(setting).length > 0 && { setting }) }
}

function withoutUndefined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
