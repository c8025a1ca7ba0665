import type { explainWords } from '../en/explain.ts'
import type { Chinese } from '../words.ts'

export const explain: Chinese<typeof explainWords> = {
  intro: '模拟调用：进行所有检查并选择渠道，但不发送、不预扣，也不计入密钥的限额。',
  key: '以哪个密钥',
  keyHint: '名称、结尾字符或 ID（key_…）',
  keyMissing: '请从列表中选择一个密钥。',
  dialect: '协议',
  body: '请求（JSON）',
  bodyInvalid: '不是有效的 JSON，请检查第 {line} 行第 {column} 列。',
  bodyNoObject: '请求必须是 JSON 对象。',
  run: '解释',
  again: '重新解释',
  noKeys: '还没有密钥，请先新建一个。',
}
