// The URL of a webhook as it is shown: everything that shows or compares it uses these functions.

import type { Actor } from '../actor.ts'

/** Path and query may contain a secret of the receiver, so support and plans do not show them. */
export const maskedUrl = (text: string): string => {
  const { origin, pathname, search } = new URL(text)
  return pathname === '/' && search === '' ? `${origin}/` : `${origin}/…`
}

/** The URL that this actor may see. A search compares only this: else its hits would tell the rest, part by part. */
export const shownUrl = ({ role }: Pick<Actor, 'role'>, url: string): string =>
  role === 'support' ? maskedUrl(url) : url
