// Starts the console.

import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queries } from './api/queries.ts'
import { boot, currentSession, onSession } from './api/session.ts'
import { applyToDocument, languageWith, takeDefaults } from './preferences.ts'
import { router } from './router.tsx'
import { showSite } from './shell/site.tsx'
import { loadLanguage } from './words/words.ts'

applyToDocument()

/** The look of the site, and what it and the person have set. Both may change while the console is open. */
async function takeSession(): Promise<void> {
  const { site, me } = currentSession()
  if (site === undefined) return
  showSite(site)
  const { defaultLanguage: language, reportingZone: zone } = site
  const defaults = { site: { language, zone }, person: me?.preferences }
  await loadLanguage(languageWith(defaults))
  takeDefaults(defaults)
}

/** In a function, and not in the module itself: chunks import this module, and would wait for it for ever. */
async function start(): Promise<void> {
  await boot()
  await takeSession()
  onSession(() => void takeSession())
  onSession(() => void router.invalidate())
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
}

void start()
