// The finish reasons that callers of this dialect get.

import type { Finish } from '../neutral/answer.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'

export const writeFinish = (finish: Finish): string => writtenReasons.gemini[finish].reason

export const BAD_CALL = writtenReasons.gemini.malformed.reason
