import type { rotationWords } from '../en/rotation.ts'
import type { Chinese } from '../words.ts'

export const rotation: Chinese<typeof rotationWords> = {
  text: '会生成新的密文，只显示一次。请选择旧密文继续有效的时间，方便程序更换而不中断。',
  overlap: '旧密文继续有效',
  overlap_0: '立即失效',
  overlap_300: '5 分钟',
  overlap_3600: '1 小时',
  overlap_86400: '1 天',
  overlap_604800: '7 天',
}
