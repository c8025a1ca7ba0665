// Writes usage in chat's form: prompt_tokens includes cached input, and completion_tokens includes thoughts. The
// details split them by kind.

import type { Usage } from '../../base/money/usage.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'

export function writeUsage(usage: Usage): object {
  const [prompt, completion] = [inputTokens(usage), outputTokens(usage)]
  const { cacheRead = 0, cacheReadAudio = 0, cacheReadImage = 0, cacheWrite = 0, cacheWrite1h = 0 } = usage
  const { inputAudio = 0, inputImage = 0, reasoning = 0, outputAudio = 0, outputImage = 0 } = usage
  const cachedKinds = { audio_tokens: cacheReadAudio, image_tokens: cacheReadImage }
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: cacheRead + cacheReadAudio + cacheReadImage,
      cache_write_tokens: cacheWrite + cacheWrite1h,
      audio_tokens: inputAudio + cacheReadAudio,
      ...(inputImage + cacheReadImage > 0 && { image_tokens: inputImage + cacheReadImage }),
      ...(cacheReadAudio + cacheReadImage > 0 && { cached_tokens_details: cachedKinds }),
      ...(cacheWrite1h > 0 && { cache_creation: { ephemeral_1h_input_tokens: cacheWrite1h } }),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: outputAudio,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
      ...(outputImage > 0 && { image_tokens: outputImage }),
    },
  }
}
