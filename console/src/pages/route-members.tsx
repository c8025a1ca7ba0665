// The members of a route: models with their steps and weights, as a list that can be edited.

import { useId } from 'react'
import { useRead } from '../api/reads.ts'
import { FieldError, invalidBy } from '../parts/field-error.tsx'
import type { FormState } from '../parts/form.tsx'
import { SelectField, useFieldErrors } from '../parts/form.tsx'
import { percent } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { routesWords } from '../words/en/routes.ts'
import { whyWords } from '../words/en/why.ts'
import { useWords } from '../words/words.ts'
import type { Member } from './route-values.ts'
import { shareOf } from './route-values.ts'

export const policies = ['balanced', 'weighted', 'least_busy', 'fastest', 'cheapest'] as const
export type Policy = (typeof policies)[number]

export interface RouteValues {
  readonly policy: Policy
  readonly members: readonly Member[]
}

/** The fields of a form with at least these values. */
export function RouteFields<T extends RouteValues>({ form }: { readonly form: FormState<T> }) {
  const t = useWords(routesWords)
  const why = useWords(whyWords)
  const models = useRead('GET /api/web/models', { query: { available: 'true', limit: 200 } })
  const routes = useRead('GET /api/web/routes', { query: { limit: 200 } })
  const { members, policy } = form.values
  const [listId, hintId, errorId] = [useId(), useId(), useId()]
  const errorOf = useFieldErrors(form)
  const error = errorOf('members')
  const wrongAt = members.findIndex((_, at) => errorOf(`members.${at}`) !== undefined)
  const setMembers = (next: readonly Member[]): void => form.set('members', next as T['members'])
  const change = (at: number, changed: Partial<Member>): void =>
    setMembers(members.map((member, index) => (index === at ? { ...member, ...changed } : member)))
  const last = members.at(-1)?.priority ?? 0
  // On a phone the name has a line of its own.
  const columns =
    'grid grid-cols-[max-content_4rem_max-content_4rem_minmax(0,1fr)_2rem] items-center gap-2 md:grid-cols-[minmax(0,1fr)_4rem_4rem_4rem_2rem]'
  return (
    <>
      <fieldset aria-describedby={hintId} className="flex flex-col gap-1">
        <legend className="mb-1 font-medium">{t('members')}</legend>
        <div aria-hidden="true" className={`${columns} text-muted text-xs max-md:hidden`}>
          <span />
          <span>{t('priority')}</span>
          <span>{t('weight')}</span>
          <span className="text-right">{t('share')}</span>
        </div>
        {members.map((member, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a member has no other name while it is written
          <div key={at} className={columns}>
            <input
              className="control w-full font-mono text-xs max-md:col-span-6"
              aria-label={t('member', { n: at + 1 })}
              {...invalidBy(errorId, wrongAt < 0 || wrongAt === at ? error : undefined)}
              list={listId}
              autoComplete="off"
              spellCheck={false}
              value={member.model}
              onChange={event => change(at, { model: event.target.value.trim() })}
            />
            <span aria-hidden="true" className="text-muted text-xs md:hidden">
              {t('priority')}
            </span>
            <input
              type="number"
              min={0}
              className="control w-full tabular-nums"
              aria-label={t('priorityOf', { n: at + 1 })}
              value={member.priority}
              onChange={event => change(at, { priority: event.target.valueAsNumber || 0 })}
            />
            <span aria-hidden="true" className="text-muted text-xs md:hidden">
              {t('weight')}
            </span>
            <input
              type="number"
              min={0}
              className="control w-full tabular-nums"
              aria-label={t('weightOf', { n: at + 1 })}
              value={member.weight}
              onChange={event => change(at, { weight: event.target.valueAsNumber || 0 })}
            />
            <span className="whitespace-nowrap text-right text-muted tabular-nums">
              {percent(shareOf(members, at), 1)}
            </span>
            <button
              type="button"
              className="grid size-7 place-items-center rounded-sm text-muted hover:bg-sunken hover:text-text"
              aria-label={t('removeMember', { n: at + 1 })}
              disabled={members.length === 1}
              onClick={() => setMembers(members.filter((_, index) => index !== at))}
            >
              <Icon name="close" size={14} />
            </button>
          </div>
        ))}
        <FieldError id={errorId} text={error} />
        <datalist id={listId}>
          {(routes.data?.data ?? []).map(({ name }) => (
            <option key={`route ${name}`} value={name} />
          ))}
          {(models.data?.data ?? []).map(({ id }) => (
            <option key={id} value={id} />
          ))}
        </datalist>
        <div className="mt-1">
          <button
            type="button"
            className="button"
            onClick={() => setMembers([...members, { model: '', priority: last, weight: 1 }])}
          >
            <Icon name="plus" size={14} />
            {t('addMember')}
          </button>
        </div>
        <p id={hintId} className="text-muted text-xs">
          {t('membersHint')}
        </p>
      </fieldset>
      <SelectField
        form={form as unknown as FormState<{ policy: Policy }>}
        name="policy"
        label={t('policy')}
        hint={why(`policyNote_${policy}`)}
        choices={policies.map(value => ({ value, label: why(`policy_${value}`) }))}
      />
    </>
  )
}
