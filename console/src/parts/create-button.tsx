// The button of a list that creates a row. The shortcut for creating clicks it.

import type { ReactNode } from 'react'
import { Icon } from './icons.tsx'

export function CreateButton({ onClick, children }: { readonly onClick: () => void; readonly children: ReactNode }) {
  return (
    <button type="button" className="button button-main" data-create onClick={onClick}>
      <Icon name="plus" />
      {children}
    </button>
  )
}
