import { Refusal } from './errors.ts'
import { hintOf } from './hints.ts'

/** For an answer that exceeds a bound of the gateway. `what` tells the caller which bound. */
export const answerTooLarge = (what: string): Refusal =>
  new Refusal('answer_too_large', what, { hint: hintOf('call_answer_large', { what }) })
