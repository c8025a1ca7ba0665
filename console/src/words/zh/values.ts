import type { valuesWords } from '../en/values.ts'
import type { Chinese } from '../words.ts'

export const values: Chinese<typeof valuesWords> = {
  yes: '是',
  no: '否',
  copy: '复制',
  copied: '已复制',
  code: '代码',
  copyFailed: '复制失败',
}
