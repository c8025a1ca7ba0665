import type { shellPartsWords } from '../en/shell-parts.ts'
import type { Chinese } from '../words.ts'

export const shellParts: Chinese<typeof shellPartsWords> = {
  theme_system: '跟随系统',
  theme_light: '浅色',
  theme_dark: '深色',
  density: '行高',
  density_dense: '紧凑',
  density_comfortable: '宽松',
  zone: '时区',
  zone_local: '此浏览器',
  shortcuts: '单字母快捷键',
  palette: '前往页面或查找内容',
  paletteEmpty: '没有找到。',
  channel_enabled: '已启用',
  channel_disabled: '已停用',
  channel_unusable: '无法使用',
  channel_gone: '密钥缺失',
  palettePages: '页面',
  keyGo: '前往{page}',
  keyPalette: '搜索与命令',
  keyFilter: '筛选列表',
  keyMove: '下一行或上一行',
  keyOpen: '打开该行',
  keyCalls: '打开调用时：上一个或下一个调用',
  keyCreate: '新建',
  keyHelp: '此帮助',
}
