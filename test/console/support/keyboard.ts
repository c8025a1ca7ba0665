// Uses a page as somebody without a mouse does.

import type { Locator, Page } from 'playwright-core'

const PRESSES_MAX = 120

export class Keyboard {
  readonly #page: Page

  constructor(page: Page) {
    this.#page = page
  }

  /** Moves with Tab to the first of these elements. */
  async tabTo(wanted: Locator): Promise<void> {
    await this.#moveTo(wanted.first(), 'Tab')
  }

  /** Replaces the text of the field with this label. */
  async type(label: string, text: string): Promise<void> {
    await this.tabTo(this.#top().getByLabel(label, { exact: true }))
    await this.#page.keyboard.press('ControlOrMeta+a')
    await this.#page.keyboard.type(text)
  }

  async press(role: 'button' | 'link', name: string): Promise<void> {
    await this.tabTo(this.#top().getByRole(role, { name, exact: true }))
    await this.#page.keyboard.press('Enter')
  }

  /** Opens a menu and chooses from it. A menu moves the focus to its first item a moment after it was opened. */
  async choose(menu: string, item: string): Promise<void> {
    await this.press('button', menu)
    await this.#page.locator('[role=menuitem]:focus').waitFor()
    await this.#moveTo(this.#page.getByRole('menuitem', { name: item, exact: true }), 'ArrowDown')
    await this.#page.keyboard.press('Enter')
  }

  async #moveTo(wanted: Locator, key: 'Tab' | 'ArrowDown'): Promise<void> {
    await wanted.and(this.#page.locator(':not(:disabled)')).waitFor()
    for (let presses = 0; presses < PRESSES_MAX; presses++) {
      if (await wanted.evaluate((element: { matches(selector: string): boolean }) => element.matches(':focus'))) return
      await this.#page.keyboard.press(key)
    }
    throw new Error(`${key} does not reach ${wanted}`)
  }

  /** What can be reached: an open dialog, or else the page. */
  #top(): Locator {
    const dialog = this.#page.locator('dialog[open]')
    return dialog.or(this.#page.locator('body:not(:has(dialog[open]))'))
  }
}
