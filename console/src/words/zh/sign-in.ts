import type { signInWords } from '../en/sign-in.ts'
import type { Chinese } from '../words.ts'

export const signIn: Chinese<typeof signInWords> = {
  title: '登录',
  email: '电子邮箱',
  password: '密码',
  code: '两步验证码',
  codeHint: '验证器中的六位数字，或一个恢复码。',
  signIn: '登录',
  register: '注册',
  pricing: '模型与价格',
  forgotten: '忘记密码？请联系本站管理员获取重设密码的链接。',
}
