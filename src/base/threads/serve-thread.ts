// The thread's side of a Thread: answers its requests. A sync handler is answered before the next message is read, so
// such requests are carried out in their order.
//
// An error that a handler throws rejects its request, and the thread continues. An error outside of a handler, also in
// `build`, ends the thread.

/** The methods of a thread: their inputs and outputs, by name. A method has at most one input. */
export type ThreadMethods<Methods> = { readonly [Name in keyof Methods]: (input: never) => unknown }

export type ThreadMethodName<Methods> = keyof Methods & string

export type ThreadHandlers<Methods extends ThreadMethods<Methods>> = {
  readonly [Name in keyof Methods]: (
    input: Parameters<Methods[Name]>[0],
  ) => ReturnType<Methods[Name]> | Promise<ReturnType<Methods[Name]>>
}

/** A request. The first message to each thread is not a request, but the set-up data. */
export type ToThread = readonly [id: number, name: string, input: unknown]

/** The answer to a request. With the id 0 it is an event, which answers no request. Tuples are sent faster than objects. */
export type FromThread = readonly [id: number, output: unknown, fault?: string]

declare const self: Worker

/**
 * Serves the requests of a thread. `build` gets the set-up data. `transferOf` names the buffers of an output that are
 * transferred instead of copied.
 */
export function serveThread<Methods extends ThreadMethods<Methods>, Setup = undefined>(
  build: (setup: Setup) => ThreadHandlers<Methods>,
  transferOf: (output: ReturnType<Methods[keyof Methods]>) => ArrayBuffer[] = () => [],
): void {
  self.onmessage = ({ data: setup }: MessageEvent<Setup>) => {
    // Thread has checked the types of set-up data and inputs; the messages have lost them.
    const handlers = build(setup) as Readonly<Record<string, (input: unknown) => unknown>>
    self.onmessage = ({ data: [id, name, input] }: MessageEvent<ToThread>) => {
      const reply = (output: unknown): void =>
        send([id, output], transferOf(output as ReturnType<Methods[keyof Methods]>))
      const fail = (fault: unknown): void => send([id, undefined, errorText(fault)])
      try {
        const output = handlers[name]!(input)
        if (output instanceof Promise) output.then(reply).catch(fail)
        else reply(output)
      } catch (fault) {
        fail(fault)
      }
    }
  }
}

/** Sends a message that answers no request. */
export const sendEvent = (event: unknown): void => send([0, event])

export const errorText = (fault: unknown): string => (fault instanceof Error ? fault.message : 'unknown error')

const send = (message: FromThread, transfer: ArrayBuffer[] = []): void => postMessage(message, transfer)
