import { words } from '../words.ts'

/** The result of testing a channel. */
export const trialWords = words('trial', {
  works: 'The channel works: {model} answered in {time}.',
  failed: 'The channel test failed: {reason}',
  status: 'Status {status}',
  advice_answered: 'The channel works.',
  advice_caller_at_fault: 'The provider refused the request. Look at its answer and at the overrides of the channel.',
  advice_credential_bad: 'The provider refuses the credential. Replace it.',
  advice_forbidden: 'The credential is not allowed to do this. Check its rights at the provider, or try another model.',
  advice_rate_limited: 'The provider allows no more calls for now. Wait and try again.',
  advice_quota_spent:
    'The quota or the funds of this credential are used up. Pay the provider, or raise its budget there.',
  advice_not_here: 'The provider does not offer this model for this credential. Fetch its models, or try another one.',
  advice_broken: 'There was no usable answer. Check the base URL, the proxy and the status of the provider.',
  advice_too_slow: 'There was no answer in time. Try again, or raise the timeouts of the channel.',
  sent: 'What was sent',
  received: 'What came back',
  overrides: 'Changed by the channel',
})
