// Words in a row, with the signs of the language of the viewer.

import { currentLanguage } from '../preferences.ts'

const isChinese = (): boolean => currentLanguage() === 'zh'

/** Between parts of a sentence. */
export const comma = (): string => (isChinese() ? '，' : ', ')

/** Names in a row: `eu, no-training`. */
export const listed = (names: readonly string[]): string => names.join(isChinese() ? '、' : ', ')

/** `Delete channel: first` */
export const labelled = (label: string, text: string): string => `${label}${isChinese() ? '：' : ': '}${text}`
