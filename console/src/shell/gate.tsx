// Shows nothing before the gateway has said who is signed in, and leads to the page for it.

import { Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useSession } from '../api/session.ts'
import { Messages } from '../parts/messages.tsx'

/** Pages that nobody needs to sign in for. */
const OPEN = /^\/(sign-in|set-up|register|join|password|pricing)$/

/** Only a path of this console is followed after signing in, never an address elsewhere. */
const isOwnPath = (path: string | undefined): path is string => path !== undefined && /^\/(?![/\\])/.test(path)

export function Gate() {
  const { state } = useSession()
  const navigate = useNavigate()
  const { pathname, search } = useRouterState({ select: ({ location }) => location })
  const isOpen = OPEN.test(pathname)
  useEffect(() => {
    const { next } = search as { readonly next?: string }
    if (state === 'set-up' && pathname !== '/set-up') void navigate({ to: '/set-up', replace: true })
    if (state === 'signed-out' && !isOpen) void navigate({ to: '/sign-in', replace: true })
    if (state === 'signed-out' && pathname === '/set-up') void navigate({ to: '/sign-in', replace: true })
    if (state === 'signed-in' && /^\/(sign-in|set-up|register)$/.test(pathname)) {
      const [path, text] = (isOwnPath(next) ? next : '/').split('?')
      void navigate({ to: path!, search: Object.fromEntries(new URLSearchParams(text)) as never, replace: true })
    }
  }, [state, pathname, isOpen, search, navigate])
  if (state === 'starting') return null
  if (!isOpen && (state === 'signed-out' || state === 'set-up')) return null
  return (
    <>
      <Outlet />
      <Messages />
    </>
  )
}
