// Which channel has answered a conversation before, for a while.

export class Affinity {
  readonly #kept = new Map<string, string>()

  recall(name: string, _nowMs: number): string | undefined {
    return this.#kept.get(name)
  }

  keep(name: string, channelId: string, _until: { readonly ttlMs: number | undefined; readonly nowMs: number }): void {
    this.#kept.set(name, channelId)
  }
}
