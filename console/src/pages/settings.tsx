// The settings of the site.

import type { ReactNode } from 'react'
import { call } from '../api/client.ts'
import { useRead, useWrite } from '../api/reads.ts'
import { boot, useMe } from '../api/session.ts'
import type { Settings } from '../api/types.ts'
import { Form, LinesField, MoneyField, NumberField, SelectField, TextField, useForm } from '../parts/form.tsx'
import { nanosOf } from '../parts/format.ts'
import { Page, Section } from '../parts/page.tsx'
import { matching, versionOf } from '../parts/rows.tsx'
import { Notice, Query } from '../parts/states.tsx'
import { settingsWords } from '../words/en/settings.ts'
import type { PlainKey } from '../words/words.ts'
import { useWords } from '../words/words.ts'
import type { LookValues } from './settings-look.tsx'
import { bodyOf, LookFields, lookOf } from './settings-look.tsx'

export function SettingsPage() {
  const t = useWords(settingsWords)
  const settings = useRead('GET /api/web/settings')
  return (
    <Page title={t('title')} intro={t('intro')}>
      <Query of={settings}>{found => <SettingsForm settings={found} />}</Query>
    </Page>
  )
}

type Plain = Pick<Settings, 'siteName' | 'notice' | 'registration' | 'invitations' | 'defaultTier' | 'startingCredit'>

interface Fields extends Plain, LookValues {
  readonly allowedDomains: readonly string[] | null
  readonly retentionDays: number | null
}

const fieldsOf = (settings: Settings): Fields => {
  const { siteName, notice, registration, invitations, defaultTier, startingCredit, retentionDays } = settings
  return {
    siteName,
    notice,
    registration,
    invitations,
    defaultTier,
    startingCredit,
    retentionDays,
    allowedDomains: settings.allowedDomains.length === 0 ? null : settings.allowedDomains,
    ...lookOf(settings),
  }
}

const isPositive = (usd: string): boolean => /^\d{1,9}(\.\d{1,9})?$/.test(usd) && nanosOf(usd) > 0n

function SettingsForm({ settings }: { readonly settings: Settings }) {
  const t = useWords(settingsWords)
  const me = useMe()
  const tiers = useRead('GET /api/web/tiers')
  const update = useWrite('PATCH /api/web/settings', 'settings')
  const form = useForm<Fields>({
    initial: fieldsOf(settings),
    version: versionOf(settings),
    async save({ changed, values, ifMatch }) {
      await update.mutateAsync({ body: bodyOf(changed, values), ...matching(ifMatch) })
      // The name of the site is at the top of every page.
      await boot()
    },
    async reload() {
      const now = await call('GET /api/web/settings')
      return { initial: fieldsOf(now), version: versionOf(now) }
    },
    done: t('saved'),
  })
  const mayEdit = me.role === 'admin' || me.role === 'owner'
  const isManaged = (name: string): string | undefined =>
    settings.managed.includes(name) ? t('byFile') : mayEdit ? undefined : t('adminOnly')
  const forOwner = (name: string): string | undefined =>
    isManaged(name) ?? (me.role === 'owner' ? undefined : t('ownerOnly'))
  const setting = <N extends keyof Fields & PlainKey<typeof settingsWords>>(name: N, whyNot = isManaged) => ({
    form,
    name,
    label: t(name as PlainKey<typeof settingsWords>),
    disabled: whyNot(name),
  })
  const { registration, startingCredit, retentionDays, defaultTier } = form.values
  const tierNames = [...new Set([...(tiers.data?.data ?? []).map(({ name }) => name), defaultTier])]
  const wasDays = form.initial.retentionDays ?? 0
  const isShorter = retentionDays !== null && retentionDays > 0 && (wasDays === 0 || retentionDays < wasDays)
  return (
    <div className="max-w-lg">
      <Form of={form} action={t('save')} disabled={mayEdit ? undefined : t('adminOnly')}>
        <div className="flex flex-col gap-8">
          <Group title={t('site')}>
            <TextField {...setting('siteName')} hint={t('siteNameHint')} />
            <TextField {...setting('notice')} hint={t('noticeHint')} lines={3} />
          </Group>
          <Group title={t('joining')}>
            <SelectField
              {...setting('registration', forOwner)}
              choices={(['off', 'open'] as const).map(value => ({ value, label: t(`registration_${value}`) }))}
            />
            {registration === 'open' && (
              <LinesField {...setting('allowedDomains', forOwner)} hint={t('allowedDomainsHint')} />
            )}
            <SelectField
              {...setting('invitations', forOwner)}
              choices={(['admins', 'managers'] as const).map(value => ({ value, label: t(`invitations_${value}`) }))}
            />
          </Group>
          <Group title={t('newAccounts')}>
            <SelectField
              {...setting('defaultTier')}
              hint={t('defaultTierHint')}
              choices={tierNames.map(value => ({ value, label: value }))}
            />
            <MoneyField {...setting('startingCredit', forOwner)} hint={t('startingCreditHint')} />
            {registration === 'open' && isPositive(startingCredit) && form.values.allowedDomains === null && (
              <Notice>{t('startingCreditOpen')}</Notice>
            )}
          </Group>
          <Group title={t('appearance')}>
            <LookFields form={form} whyNot={isManaged} />
          </Group>
          <Group title={t('records')}>
            <NumberField {...setting('retentionDays')} hint={t('retentionDaysHint')} />
            {isShorter && <Notice>{t('retentionShorter', { n: retentionDays })}</Notice>}
          </Group>
        </div>
      </Form>
    </div>
  )
}

function Group({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Section title={title}>
      <div className="flex flex-col gap-4">{children}</div>
    </Section>
  )
}
