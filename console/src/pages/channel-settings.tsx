// The settings of a channel, its credential, and what it changes in requests.

import { useState } from 'react'
import type { BodyOf } from '../api/client.ts'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useWrite } from '../api/reads.ts'
import type { Channel } from '../api/types.ts'
import { Code } from '../parts/copy.tsx'
import { Form, LinesField, NumberField, SwitchField, TextField, useFieldErrors, useForm } from '../parts/form.tsx'
import { duration, wholeNumber } from '../parts/format.ts'
import { Section } from '../parts/page.tsx'
import { Notice, Warnings } from '../parts/states.tsx'
import { Facts, None, Tags, YesNo } from '../parts/values.tsx'
import { channelWords } from '../words/en/channel.ts'
import { listed } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import type { Headers, Parameters } from './channel-values.ts'
import { headerLines, readHeaders, readParameters } from './channel-values.ts'

type Change = BodyOf<'PATCH /api/web/channels/{channel}'>

interface SettingValues {
  readonly name: string
  readonly baseUrl: string
  readonly priority: number | null
  readonly weight: number | null
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number | null
  readonly tags: readonly string[] | null
  readonly foreignIds: boolean
}

const settingsOf = (channel: Channel): SettingValues => ({
  name: channel.name ?? '',
  baseUrl: channel.ownBaseUrl ?? '',
  priority: channel.priority,
  weight: channel.weight,
  requestsPerMinute: channel.requestsPerMinute,
  tokensPerMinute: channel.tokensPerMinute,
  concurrency: channel.concurrency,
  tags: channel.ownTags.length === 0 ? null : channel.ownTags,
  foreignIds: channel.foreignIds,
})

/** Why the channel cannot be changed here; undefined if it can. */
function useReadOnly(channel: Channel): string | undefined {
  const t = useWords(channelWords)
  const may = useMay()
  if (channel.managedBy === 'file') return t('fromFile')
  return may('PATCH /api/web/channels/{channel}') ? undefined : t('readOnly')
}

export function ChannelSettings({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const readOnly = useReadOnly(channel)
  const [times, setTimes] = useState(0)
  if (readOnly !== undefined) return <SettingFacts channel={channel} reason={readOnly} />
  return (
    <div className="flex max-w-xl flex-col gap-8">
      <SettingsForm channel={channel} />
      {channel.from === 'stored' && (
        <Section title={t('credential')}>
          <CredentialForm key={times} channel={channel} onSaved={() => setTimes(times + 1)} />
        </Section>
      )}
    </div>
  )
}

interface ReadOnlyProps {
  readonly channel: Channel
  readonly reason: string
}

function SettingFacts({ channel, reason }: ReadOnlyProps) {
  const t = useWords(channelWords)
  const cap = (n: number | null): string => (n === null ? t('noCap') : wholeNumber(n))
  return (
    <div className="flex flex-col gap-4">
      {channel.managedBy === null && <p className="text-muted">{reason}</p>}
      <Facts
        of={[
          { name: t('priority'), value: wholeNumber(channel.priority) },
          { name: t('weight'), value: wholeNumber(channel.weight) },
          { name: t('rpm'), value: cap(channel.requestsPerMinute) },
          { name: t('tpm'), value: cap(channel.tokensPerMinute) },
          { name: t('concurrency'), value: cap(channel.concurrency) },
          { name: t('tags'), value: <Tags of={channel.tags} /> },
          { name: t('foreignIds'), value: <YesNo value={channel.foreignIds} /> },
        ]}
      />
    </div>
  )
}

interface CredentialFormProps {
  readonly channel: Channel
  readonly onSaved: () => void
}

/** A credential can be replaced, and is never shown. The field is empty again after saving. */
function CredentialForm({ channel: { id, version, credential: known }, onSaved }: CredentialFormProps) {
  const t = useWords(channelWords)
  const save = useWrite('PATCH /api/web/channels/{channel}', 'channels', 'models')
  const form = useForm({
    initial: { credential: '' },
    save: ({ values: { credential } }) =>
      save.mutateAsync({ params: { channel: id }, body: { credential }, ifMatch: version }),
    done: t('credentialSaved'),
    onSaved,
  })
  return (
    <Form of={form} action={t('saveCredential')}>
      <TextField
        form={form}
        name="credential"
        label={t('newCredential')}
        hint={known === null ? t('newCredentialNone') : t('newCredentialHint', { text: known.fingerprint })}
        mono
      />
    </Form>
  )
}

function SettingsForm({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const save = useWrite('PATCH /api/web/channels/{channel}', 'channels', 'models')
  const params = { channel: channel.id }
  const form = useForm<SettingValues>({
    initial: settingsOf(channel),
    version: channel.version,
    async save({ changed: { baseUrl, priority, weight, tags, ...rest }, ifMatch }) {
      const body: Change = {
        ...rest,
        ...(baseUrl !== undefined && { baseUrl: baseUrl === '' ? null : baseUrl }),
        ...(priority !== undefined && { priority: priority ?? 0 }),
        ...(weight !== undefined && { weight: weight ?? 1 }),
        ...(tags !== undefined && { tags: tags ?? [] }),
      }
      const saved = await save.mutateAsync({ params, body, ...(ifMatch !== undefined && { ifMatch }) })
      setWarnings(saved.warnings)
    },
    async reload() {
      const now = await call('GET /api/web/channels/{channel}', { params })
      return { initial: settingsOf(now), version: now.version }
    },
    done: t('saved'),
  })
  const isFixed = channel.from === 'environment' ? t('fromEnvironment') : undefined
  const providerTags = channel.tags.filter(tag => !channel.ownTags.includes(tag))
  return (
    <div className="flex flex-col gap-4">
      {isFixed !== undefined && <Notice tone="accent">{isFixed}</Notice>}
      <Form of={form} action={t('save')}>
        {channel.from === 'stored' && (
          <>
            <TextField form={form} name="name" label={t('name')} />
            <TextField form={form} name="baseUrl" label={t('baseUrl')} hint={t('baseUrlHint')} mono />
          </>
        )}
        <div className="grid gap-4 md:grid-cols-2">
          <NumberField form={form} name="priority" label={t('priority')} hint={t('priorityHint')} />
          <NumberField form={form} name="weight" label={t('weight')} hint={t('weightHint')} />
        </div>
        <fieldset>
          <legend className="sr-only">{t('caps')}</legend>
          <div className="grid gap-4 md:grid-cols-3">
            <NumberField form={form} name="requestsPerMinute" label={t('rpm')} placeholder={t('noCap')} />
            <NumberField form={form} name="tokensPerMinute" label={t('tpm')} placeholder={t('noCap')} />
            <NumberField form={form} name="concurrency" label={t('concurrency')} placeholder={t('noCap')} />
          </div>
        </fieldset>
        <LinesField
          form={form}
          name="tags"
          label={t('tags')}
          hint={providerTags.length > 0 ? t('tagsHint', { tags: listed(providerTags) }) : t('tagsHintNone')}
        />
        <SwitchField form={form} name="foreignIds" label={t('foreignIds')} hint={t('foreignIdsHint')} />
        <Warnings of={warnings} />
      </Form>
    </div>
  )
}

const timeNames = [
  'connectSeconds',
  'tlsSeconds',
  'firstContentSeconds',
  'betweenChunksSeconds',
  'totalSeconds',
] as const
type TimeName = (typeof timeNames)[number]

type OverrideValues = { readonly headers: string; readonly parameters: string } & {
  readonly [N in TimeName]: number | null
}

const overridesOf = ({ headers, parameters, times }: Channel): OverrideValues => ({
  headers: headerLines(headers),
  parameters: Object.keys(parameters).length === 0 ? '' : JSON.stringify(parameters, null, 2),
  connectSeconds: times.connectSeconds ?? null,
  tlsSeconds: times.tlsSeconds ?? null,
  firstContentSeconds: times.firstContentSeconds ?? null,
  betweenChunksSeconds: times.betweenChunksSeconds ?? null,
  totalSeconds: times.totalSeconds ?? null,
})

const EXAMPLE = JSON.stringify(
  { 'openai-chat': { set: { temperature: 0 }, default: { top_p: 0.9 }, remove: ['logprobs'] } },
  null,
  2,
)

export function ChannelOverrides({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const readOnly = useReadOnly(channel)
  const reason = readOnly ?? (channel.from === 'environment' ? t('fromEnvironment') : undefined)
  return reason === undefined ? (
    <OverridesForm channel={channel} />
  ) : (
    <OverrideFacts channel={channel} reason={reason} />
  )
}

function OverrideFacts({ channel, reason }: ReadOnlyProps) {
  const t = useWords(channelWords)
  const values = overridesOf(channel)
  return (
    <div className="flex max-w-2xl flex-col gap-4">
      {channel.managedBy === null && <p className="text-muted">{reason}</p>}
      <Facts
        of={[
          {
            name: t('headers'),
            value: values.headers === '' ? <None /> : <Code text={values.headers} label={t('headers')} />,
          },
          {
            name: t('parameters'),
            value: values.parameters === '' ? <None /> : <Code text={values.parameters} label={t('parameters')} />,
          },
          ...timeNames.map(name => ({
            name: t(name),
            value: values[name] === null ? <None /> : duration(values[name] * 1_000),
          })),
        ]}
      />
    </div>
  )
}

function OverridesForm({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const save = useWrite('PATCH /api/web/channels/{channel}', 'channels')
  const params = { channel: channel.id }
  const form = useForm<OverrideValues>({
    initial: overridesOf(channel),
    version: channel.version,
    async save({ changed, values, ifMatch }) {
      const { headers, parameters, ...times } = changed
      const body: Change = {
        ...(headers !== undefined && { headers: readHeaders(headers) as Headers }),
        ...(parameters !== undefined && { parameters: parametersOf(parameters) }),
        ...(Object.keys(times).length > 0 && { times: timesOf(values) }),
      }
      const saved = await save.mutateAsync({ params, body, ...(ifMatch !== undefined && { ifMatch }) })
      setWarnings(saved.warnings)
    },
    async reload() {
      const now = await call('GET /api/web/channels/{channel}', { params })
      return { initial: overridesOf(now), version: now.version }
    },
    done: t('saved'),
  })
  const headers = readHeaders(form.values.headers)
  const parameters = readParameters(form.values.parameters)
  const fault =
    typeof headers === 'number'
      ? t('headersInvalid', { n: headers })
      : 'value' in parameters
        ? undefined
        : parameters.fault === null
          ? t('parametersNoObject')
          : t('parametersInvalid', { ...parameters.fault })
  // The gateway may name only `times`, and the field in its text.
  const timesError = useFieldErrors(form)('times')
  const wrongTime = timeNames.find(name => timesError?.includes(name))
  return (
    <div className="flex max-w-2xl flex-col gap-4">
      <p className="text-muted">{t('overridesNote')}</p>
      <Form of={form} action={t('saveOverrides')} disabled={fault}>
        <TextField form={form} name="headers" label={t('headers')} hint={t('headersHint')} lines={3} mono />
        <TextField
          form={form}
          name="parameters"
          label={t('parameters')}
          hint={t('parametersHint')}
          lines={Math.min(20, Math.max(4, form.values.parameters.split('\n').length))}
          mono
        />
        {form.values.parameters === '' && (
          <details>
            <summary className="min-h-6 cursor-pointer text-muted">{t('parametersExample')}</summary>
            <Code text={EXAMPLE} label={t('parametersExample')} />
          </details>
        )}
        <Section title={t('times')} note={t('timesHint')}>
          <div className="grid gap-4 md:grid-cols-3">
            {timeNames.map(name => (
              <NumberField
                key={name}
                form={form}
                name={name}
                param={name === wrongTime ? 'times' : `times.${name}`}
                label={t(name)}
              />
            ))}
          </div>
        </Section>
        {fault !== undefined && <Notice tone="bad">{fault}</Notice>}
        <Warnings of={warnings} />
      </Form>
    </div>
  )
}

/** The form is not sent while the text is no object. */
function parametersOf(text: string): Parameters {
  const read = readParameters(text)
  return ('value' in read ? read.value : {}) as Parameters
}

function timesOf(values: OverrideValues): NonNullable<Change['times']> {
  return Object.fromEntries(timeNames.flatMap(name => (values[name] === null ? [] : [[name, values[name]]])))
}
