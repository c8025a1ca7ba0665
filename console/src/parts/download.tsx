// Downloads. The gateway gives an address that works once, so that the browser writes the file to the disk by itself.

import type { BodyOf } from '../api/client.ts'
import { call } from '../api/client.ts'
import { downloadWords } from '../words/en/download.ts'
import { useWords } from '../words/words.ts'
import { Menu } from './dialog.tsx'
import { Icon } from './icons.tsx'
import { say } from './messages.tsx'
import { useErrorText } from './states.tsx'

interface DownloadProps {
  readonly of: 'records' | 'statement'
  readonly query: Readonly<Record<string, unknown>>
}

export function DownloadMenu({ of, query }: DownloadProps) {
  const t = useWords(downloadWords)
  const textOf = useErrorText()
  const download = async (format: 'csv' | 'ndjson'): Promise<void> => {
    try {
      const body = { of, query: { ...query, format } }
      const { url } = await call('POST /api/web/downloads', { body: body as BodyOf<'POST /api/web/downloads'> })
      const link = document.createElement('a')
      link.href = url
      link.download = ''
      link.click()
    } catch (error) {
      say(textOf(error), { isBad: true })
    }
  }
  return (
    <Menu
      label={t('export')}
      className="button"
      items={[
        { label: t('csv'), icon: 'download', run: () => void download('csv') },
        { label: t('ndjson'), icon: 'download', run: () => void download('ndjson') },
      ]}
    >
      <Icon name="download" />
      {t('export')}
    </Menu>
  )
}
