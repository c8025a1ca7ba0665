import type { secretOnceWords } from '../en/secret-once.ts'
import type { Chinese } from '../words.ts'

export const secretOnce: Chinese<typeof secretOnceWords> = {
  done: '我已复制',
  doneLink: '我已转交',
  save: '保存为文件',
}
