import { words } from '../words.ts'

export const signInWords = words('signIn', {
  title: 'Sign in',
  email: 'Email',
  password: 'Password',
  code: 'Code of the second factor',
  codeHint: 'Six digits of your authenticator, or a recovery code.',
  signIn: 'Sign in',
  register: 'Create an account',
  pricing: 'Models and prices',
  forgotten: 'Forgotten your password? Ask an admin of this site for a link to choose a new one.',
})
