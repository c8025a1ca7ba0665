import { words } from '../words.ts'

/** The texts of error codes. A code without a text here is shown with the text of the gateway. */
export const errorWords = words('errors', {
  offline: 'The gateway cannot be reached. The network or the gateway may be down.',
  session_over: 'Your session has ended. Sign in again.',
  role_too_low: 'Your role does not allow this.',
})
