import type { formWords } from '../en/form.ts'
import type { Chinese } from '../words.ts'

export const form: Chinese<typeof formWords> = {
  cancel: '取消',
  discard: '放弃更改',
  conflict: '在您编辑期间，其他人更改了此内容。请为每个字段选择一个值，然后再次保存。',
  merged: '其他人同时更改了别的字段，与您的更改无关。请再次保存。',
  field: '字段',
  theirs: '当前已保存',
  mine: '您的值',
  takeTheirs: '保留已保存的值',
  keepMine: '使用我的值',
  leaveTitle: '不保存就离开？',
  leaveText: '离开后，您在此页的更改将丢失。',
  stay: '留在此页',
  leave: '离开',
  half: '有字段尚未填写完整。',
  noAmount: '请输入美元金额，最多九位小数，例如 0.25',
}
