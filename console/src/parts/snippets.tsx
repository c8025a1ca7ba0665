// Code that calls this gateway, for each SDK.

import { useState } from 'react'
import { Code } from './copy.tsx'
import type { Dialect } from './dialect-requests.ts'
import type { Language } from './sdk-code.ts'
import { codeIn } from './sdk-code.ts'

interface Tab {
  readonly title: string
  readonly language: Language
  readonly dialect: Dialect
}

const tabs: readonly Tab[] = [
  { title: 'curl', language: 'curl', dialect: 'chat' },
  { title: 'Python (openai)', language: 'python', dialect: 'chat' },
  { title: 'TypeScript (openai)', language: 'typescript', dialect: 'chat' },
  { title: 'Python (anthropic)', language: 'python', dialect: 'messages' },
]

interface SnippetsProps {
  /** Without it, the code reads the key from the environment variable WEIR_KEY. */
  readonly keyText?: string
  readonly model?: string
}

export function Snippets({ keyText, model = 'demo/echo' }: SnippetsProps) {
  const [shown, show] = useState(tabs[0]!)
  const code = codeIn(shown.language, {
    dialect: shown.dialect,
    prompt: { model, system: '', text: 'Hello', maxTokens: 1_000 },
    origin: location.origin,
    key: keyText,
  })
  return (
    <div>
      <div className="mb-2 flex flex-wrap gap-1">
        {tabs.map(tab => (
          <button
            key={tab.title}
            type="button"
            aria-pressed={tab === shown}
            className={`min-h-7 rounded-sm px-2 ${tab === shown ? 'bg-accent-soft font-medium text-accent' : 'text-muted hover:bg-sunken'}`}
            onClick={() => show(tab)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <Code text={code} label={shown.title} />
    </div>
  )
}
