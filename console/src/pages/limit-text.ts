// A limit in words.

import type { Limit } from '../api/types.ts'
import { limitsWords } from '../words/en/limits.ts'
import { useWords } from '../words/words.ts'

type LimitLike = Pick<Limit, 'resource' | 'span' | 'key' | 'account' | 'tier' | 'model' | 'per'> &
  Partial<Pick<Limit, 'keyName' | 'accountName'>>

interface LimitTexts {
  /** `requests a minute` */
  what(limit: Pick<LimitLike, 'resource' | 'span'>): string
  /** `tier free, model openai/*` */
  who(limit: LimitLike): string
  /** `each key for itself` */
  shared(limit: Pick<LimitLike, 'per'>): string
}

export function useLimitTexts(): LimitTexts {
  const t = useWords(limitsWords)
  return {
    what({ resource, span }) {
      const what = t(`resource_${resource}`)
      return span === null ? what : span === 'minute' ? t('perMinute', { what }) : t('perDay', { what })
    },
    who({ key, account, tier, model, keyName, accountName }) {
      const parts = [
        key !== null && t('key', { name: keyName ?? key }),
        account !== null && t('account', { name: accountName ?? account }),
        tier !== null && t('tier', { name: tier }),
        model !== null && t('model', { name: model }),
      ].filter(part => part !== false)
      return parts.length === 0 ? t('all') : parts.join(t('join'))
    },
    shared({ per }) {
      const [only] = per
      if (only === undefined) return t('together')
      if (per.length > 1) return t('eachOf', { parts: per.map(part => t(`part_${part}`)).join(' + ') })
      return only === 'key' ? t('eachKey') : only === 'account' ? t('eachAccount') : t('eachModel')
    },
  }
}
