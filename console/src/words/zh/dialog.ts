import type { dialogWords } from '../en/dialog.ts'
import type { Chinese } from '../words.ts'

export const dialog: Chinese<typeof dialogWords> = {
  close: '关闭',
  cancel: '取消',
  typeToConfirm: '输入 {text} 以确认。',
}
