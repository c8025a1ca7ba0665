// Written by scripts/write-console-types.ts from docs/reference/openapi.json. Do not edit.

export type Account = {
  readonly id: string
  readonly name: string
  readonly type: 'personal' | 'team'
  readonly kind: 'prepaid' | 'postpaid'
  readonly balance: string
  readonly held: string
  readonly creditLimit: string
  readonly available: string | null
  readonly keepsBodies: boolean
  readonly tier: string | null
  readonly allows: readonly string[] | null
  readonly denies: readonly string[] | null
  readonly frozen: boolean
  readonly frozenSince: string | null
  readonly created: string
  readonly version: number
  readonly managedBy: 'file' | null
}

export type AccountUse = { readonly lastUsed: string | null; readonly spent30d: string; readonly keys: number }

export type AuditRow = {
  readonly seq: number
  readonly made: string
  readonly actor: string
  readonly actorName: string | null
  readonly address: string | null
  readonly request: string | null
  readonly action: string
  readonly target: string
  readonly targetName: string | null
  readonly account: string | null
  readonly accountName: string | null
  readonly changes: Readonly<
    Record<string, string | number | boolean | null | readonly (string | number | boolean | null)[]>
  >
  readonly hash: string
  readonly hashBefore?: string
  readonly hashedText?: string
}

export type Backtest = {
  readonly calls: number
  readonly was: string
  readonly wouldBe: string
  readonly difference: string
  readonly from: string
  readonly before: string
  readonly complete: boolean
  readonly coveredFrom: string
  readonly byModel: readonly {
    readonly calls: number
    readonly was: string
    readonly wouldBe: string
    readonly difference: string
    readonly model: string
  }[]
  readonly byDay: readonly {
    readonly calls: number
    readonly was: string
    readonly wouldBe: string
    readonly difference: string
    readonly day: string
  }[]
  readonly leftOut: readonly { readonly reason: string; readonly calls: number; readonly about: string }[]
}

export type BalanceAlert = {
  readonly threshold: string | null
  readonly state: 'fine' | 'low' | 'empty' | null
  readonly version: number
}

export type Budget = {
  readonly span: 'total' | 'day' | 'month'
  readonly cap: string
  readonly spent: string
  readonly held: string
  readonly left: string
  readonly ends: string | null
  readonly version: number
}

export type BulkResult = {
  readonly key: string
  readonly result: 'done' | 'unknown' | 'revoked' | 'playground' | 'failed'
}

export type Channel = {
  readonly id: string
  readonly provider: string
  readonly from: 'environment' | 'stored'
  readonly name: string | null
  readonly baseUrl: string | null
  readonly ownBaseUrl: string | null
  readonly state: 'enabled' | 'disabled' | 'unusable' | 'gone'
  readonly problem: string | null
  readonly problemHint: Hint | null
  readonly disabled: boolean
  readonly credential: { readonly fingerprint: string; readonly origin: string } | null
  readonly credentialFrom: string | null
  readonly weight: number
  readonly priority: number
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number | null
  readonly proxy: boolean
  readonly tags: readonly string[]
  readonly ownTags: readonly string[]
  readonly foreignIds: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly parameters: Readonly<
    Record<
      string,
      {
        readonly set?: Readonly<Record<string, JsonValue>>
        readonly default?: Readonly<Record<string, JsonValue>>
        readonly remove?: readonly string[]
      }
    >
  >
  readonly times: {
    readonly connectSeconds?: number
    readonly tlsSeconds?: number
    readonly firstContentSeconds?: number
    readonly betweenChunksSeconds?: number
    readonly totalSeconds?: number
  }
  readonly health: {
    readonly state: string
    readonly availableInMs: number
    readonly activeCalls: number
    readonly limit: number | null
    readonly firstMs: number | null
    readonly lastFailure: { readonly verdict: string; readonly agoMs: number } | null
    readonly lost: number
  } | null
  readonly version: number
  readonly author: string | null
  readonly created: string | null
  readonly changed: string | null
  readonly managedBy: 'file' | null
}

export type ChannelSummary = {
  readonly enabled: number
  readonly disabled: number
  readonly unusable: number
  readonly gone: number
  readonly health: Readonly<Record<string, number>>
  readonly troubled: readonly TroubledChannel[]
}

export type Code = {
  readonly id: string
  readonly batch: string
  readonly amount: string
  readonly state: 'open' | 'redeemed' | 'voided' | 'expired'
  readonly author: string
  readonly made: string
  readonly expires: string | null
  readonly redeemed: string | null
  readonly account: string | null
}

export type CodeBatch = {
  readonly batch: string
  readonly codes: number
  readonly redeemed: number
  readonly voided: number
  readonly worth: string
  readonly made: string
  readonly expires: string | null
}

export type DailyHash = {
  readonly day: string
  readonly transfers: number
  readonly lastKind: string
  readonly lastRef: string
  readonly balance: string
  readonly previousHash: string
  readonly hash: string
}

export type Download = { readonly url: string; readonly expiresAt: string }

export type EndUser = {
  readonly endUser: string
  readonly calls: number
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cost: string
}

export type ErrorCount = { readonly outcome: string; readonly error: string | null; readonly calls: number }

export type ErrorList = { readonly from: string; readonly before: string; readonly data: readonly ErrorCount[] }

export type ExplainedCandidate = {
  readonly model: string
  readonly channel: string | null
  readonly dropped: string | null
  readonly availableInMs?: number | null
  readonly share?: number | null
  readonly score?: number | null
  readonly tags?: readonly string[]
}

export type ExplainedChoice = {
  readonly model?: string
  readonly channel?: string
  readonly reason?: 'kept' | 'policy' | 'nearest'
  readonly kind?: 'wait' | 'none'
  readonly forMs?: number | null
  readonly retryAfterMs?: number | null
}

export type ExplainedHold = {
  readonly usd: string
  readonly inputTokensMax: number
  readonly outputTokensMax: number
  readonly thoughtTokensMax?: number
  readonly choices: number
  readonly searchesMax: number
  readonly units?: Readonly<Record<string, number>>
  readonly countedInputTokens?: number
  readonly slices?: 'streamed' | 'collected'
  readonly cap?: number
}

export type ExplainedKey = {
  readonly id: string
  readonly name?: string
  readonly account: string
  readonly tier: string
  readonly strictCap: boolean
  readonly strict: boolean
  readonly keepsBodies: boolean
  readonly explains: boolean
  readonly may: {
    readonly allows: readonly string[] | null
    readonly denies: readonly string[] | null
    readonly requires: readonly string[] | null
  }
}

export type ExplainedLimit = {
  readonly whose: string
  readonly resource: 'requests' | 'tokens' | 'concurrency'
  readonly span: 'minute' | 'day' | null
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
}

export type ExplainedPrice = {
  readonly model: string
  readonly free?: boolean
  readonly version?: number
  readonly rates?: Readonly<Record<string, string>>
  readonly cases?: number
  readonly multiplier?: number
  readonly serviceClass?: string
}

export type ExplainedRefusal = {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly param?: string | null
  readonly hint?: Hint
  readonly retryAfterMs?: number
  readonly replays?: string
}

export type ExplainedRouting = {
  readonly policy?: string
  readonly affinity?: {
    readonly conversation: string
    readonly keptOn: string | null
    readonly state: 'new' | 'kept' | 'moved'
  } | null
  readonly picked?: ExplainedChoice
  readonly candidates: readonly ExplainedCandidate[]
  readonly upstream?: ExplainedUpstream
}

export type ExplainedUpstream = {
  readonly channel: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly bodyBytes: number
  readonly bodyCut: boolean
}

export type Explanation = {
  readonly object: 'weir.explanation'
  readonly requestId: string
  readonly dialect: string
  readonly wouldAnswer: ExplainedRefusal | null
  readonly key: ExplainedKey
  readonly limits?: readonly ExplainedLimit[]
  readonly model?: { readonly requested: string; readonly resolved?: readonly string[] }
  readonly prices?: readonly ExplainedPrice[]
  readonly funds: { readonly kind: 'prepaid' | 'postpaid'; readonly frozen: boolean; readonly available: string | null }
  readonly hold?: ExplainedHold
  readonly loss?: readonly string[]
  readonly overrides?: readonly string[]
  readonly mediaToFetch?: number
  readonly routing?: ExplainedRouting
}

export type Figures = {
  readonly from: string
  readonly before: string
  readonly summedUp: number
  readonly calls: number
  readonly errors: number
  readonly streamed: number
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cost: string
  readonly shortfall: string
  readonly refunded: string
  readonly cacheSavings: string
  readonly providerCost: string | null
  readonly margin: string | null
  readonly firstContentMs: Percentiles | null
  readonly durationMs: Percentiles | null
}

export type Gateway = {
  readonly version: string
  readonly consoleBuild: string | null
  readonly started: string
  readonly ready: boolean
  readonly overload: number
  readonly loopLateMs: number
  readonly activeCalls: number
  readonly unsettledCalls: number
  readonly ledgerLateMs: number
  readonly storageFull: boolean
  readonly bodiesDropped: number
  readonly database: {
    readonly kind: 'sqlite' | 'postgres'
    readonly lastBackup: string | null
    readonly logBytes: number | null
    readonly clockAheadMs: number | null
  }
  readonly processes: readonly GatewayProcess[]
  readonly books: 'agree' | 'do not agree' | 'not looked at yet'
  readonly audited: string | null
  readonly well: boolean
  readonly findings: readonly GatewayFinding[]
}

export type GatewayFinding = {
  readonly check:
    | 'no_data'
    | 'shared_empty'
    | 'shared'
    | 'shared_unsure'
    | 'lease_late'
    | 'clock_wrong'
    | 'versions_differ'
    | 'database_unreadable'
    | 'schema_later'
    | 'not_running'
    | 'not_answering'
    | 'not_ready'
    | 'ledger_drift'
    | 'store_full'
    | 'unsettled_calls'
    | 'folder'
    | 'base_url'
    | 'base_url_unsure'
    | 'accounts_frozen'
    | 'holds_stuck'
    | 'our_errors'
    | 'overload'
    | 'credential_bad'
    | 'quota_spent'
    | 'channel_blocked'
    | 'price_unknown'
    | 'calls_failing'
    | 'audit_missed'
    | 'loop_late'
    | 'log_large'
    | 'backup_old'
    | 'metrics_deaf'
    | 'set_up_open'
    | 'schema_earlier'
    | 'bodies_dropped'
    | 'errors'
  readonly severity: 'problem' | 'note'
  readonly about: string
  readonly text: string
  readonly textHint: Hint
  readonly remedy: string | null
  readonly remedyHint: Hint | null
}

export type GatewayProcess = {
  readonly slot: number | null
  readonly address: string
  readonly version: string
  readonly leaseAgeMs: number | null
  readonly hasRunOut: boolean
  readonly isThis: boolean
}

export type GroupPoint = {
  readonly at: string
  readonly calls: number
  readonly errors: number
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly cost: string | null
}

export type Hint = {
  readonly code:
    | 'missing'
    | 'missing_one_of'
    | 'missing_type'
    | 'unknown'
    | 'unknown_near'
    | 'unknown_allowed'
    | 'unknown_none'
    | 'segment_one_of'
    | 'twice'
    | 'only_for'
    | 'levels_max'
    | 'values_max'
    | 'content_type'
    | 'body_bytes'
    | 'body_pieces'
    | 'bodies_of_owner'
    | 'bodies_in_all'
    | 'starting'
    | 'must_be_readable'
    | 'must_be_valid'
    | 'must_be_kind'
    | 'must_match'
    | 'must_be_time'
    | 'must_be_path'
    | 'must_be_lower_case'
    | 'must_have_few_headers'
    | 'must_be_domain'
    | 'must_not_be_negative'
    | 'must_be_batch_or_code'
    | 'must_be_email'
    | 'must_have_no_controls'
    | 'must_be_unicode'
    | 'must_be_amount'
    | 'must_be_correction'
    | 'must_be_bound'
    | 'must_be_model'
    | 'must_be_tried_model'
    | 'must_be_conversation'
    | 'must_be_seq'
    | 'must_be_token_role'
    | 'must_be_reference'
    | 'must_be_proxy'
    | 'must_be_early'
    | 'must_be_id'
    | 'must_be_tag'
    | 'must_be_tier_name'
    | 'must_be_trial'
    | 'must_be_pattern'
    | 'must_be_together'
    | 'must_be_zone'
    | 'must_be_logo'
    | 'must_be_support_url'
    | 'must_be_events_once'
    | 'must_be_secret'
    | 'range_malformed'
    | 'range_prefix'
    | 'range_bits'
    | 'address_http'
    | 'address_credentials'
    | 'address_query'
    | 'address_never'
    | 'address_private'
    | 'address_https'
    | 'address_proxy'
    | 'url_invalid'
    | 'url_scheme'
    | 'url_credentials'
    | 'url_https'
    | 'url_port'
    | 'url_late'
    | 'url_unreachable'
    | 'url_stopped'
    | 'url_status'
    | 'url_redirect'
    | 'webhook_secret_lost'
    | 'host_never'
    | 'host_private'
    | 'address_proxy_encoded'
    | 'for_operator'
    | 'gateway_needed'
    | 'gateway_not_running'
    | 'managed_by_file'
    | 'token_not_here'
    | 'token_is_key'
    | 'token_or_cookie'
    | 'token_unknown'
    | 'token_was_revoked'
    | 'token_expired'
    | 'token_rotated'
    | 'token_above_own'
    | 'token_outlives'
    | 'token_name_taken'
    | 'token_revoked'
    | 'tokens_max'
    | 'exports_of_person'
    | 'exports_of_account'
    | 'live_streams_max'
    | 'download_needs_session'
    | 'download_once'
    | 'downloads_max'
    | 'tier_unknown'
    | 'tier_unknown_named'
    | 'tier_unknown_listed'
    | 'default_tier_unknown'
    | 'tier_in_use'
    | 'tier_is_default'
    | 'tier_is_needed'
    | 'default_tier_missing'
    | 'not_to_yourself'
    | 'email_taken'
    | 'email_taken_sign_in'
    | 'email_domain'
    | 'email_by_admin'
    | 'password_needed'
    | 'password_length'
    | 'password_distinct'
    | 'password_common'
    | 'password_is_email'
    | 'factor_exists'
    | 'factor_code_wrong'
    | 'owner_exists'
    | 'invitations_max'
    | 'credit_too_low'
    | 'team_name_reserved'
    | 'rights_too_wide'
    | 'budget_too_wide'
    | 'expires_past'
    | 'code_ended'
    | 'code_unknown'
    | 'code_used'
    | 'code_expired'
    | 'code_void'
    | 'code_redeemed_here'
    | 'posting_reference'
    | 'posting_balance_low'
    | 'posting_balance_high'
    | 'posting_not_charged'
    | 'posting_more_than_charged'
    | 'account_needed'
    | 'key_revoked'
    | 'key_of_playground'
    | 'keys_max'
    | 'key_raced'
    | 'playground_budget'
    | 'id_malformed'
    | 'id_taken'
    | 'explain_path'
    | 'after_wrong'
    | 'from_before'
    | 'from_before_now'
    | 'from_backtest'
    | 'settled_after_alone'
    | 'search_days'
    | 'conversation_key'
    | 'conversation_days'
    | 'money_form'
    | 'channels_for_staff'
    | 'raw_for_staff'
    | 'steps_too_fine'
    | 'statistics_none'
    | 'steps_max'
    | 'zone_by_day'
    | 'zone_range'
    | 'zone_unknown'
    | 'zone_hours'
    | 'deletions_max'
    | 'deletion_which'
    | 'webhook_url'
    | 'webhook_url_taken'
    | 'webhooks_max'
    | 'webhook_events'
    | 'webhook_disabled'
    | 'channels_or_filter'
    | 'limits_max'
    | 'limit_for_nobody'
    | 'limit_exists'
    | 'limit_resource'
    | 'limit_no_window'
    | 'limit_window'
    | 'limit_amount'
    | 'limit_per'
    | 'limit_tier'
    | 'limit_model'
    | 'limit_unusable'
    | 'route_unreadable'
    | 'route_unusable'
    | 'route_name'
    | 'route_member_twice'
    | 'route_stale'
    | 'routes_max'
    | 'route_unknown'
    | 'route_disabled'
    | 'route_no_provider'
    | 'route_no_provider_near'
    | 'route_no_model'
    | 'route_no_model_near'
    | 'route_member_weight'
    | 'route_twice'
    | 'route_members_max'
    | 'route_name_stars'
    | 'route_policy'
    | 'route_empty'
    | 'route_model_stars'
    | 'route_model_star'
    | 'route_priority'
    | 'route_weight'
    | 'route_weights_zero'
    | 'route_weights_large'
    | 'route_name_text'
    | 'route_model_text'
    | 'route_circle'
    | 'route_depth'
    | 'route_steps'
    | 'provider_unknown'
    | 'provider_unknown_near'
    | 'provider_built_in'
    | 'provider_id_differs'
    | 'definition_exists'
    | 'definition_unknown'
    | 'definitions_max'
    | 'definition_size'
    | 'definition_invalid'
    | 'definition_stale'
    | 'provider_in_use'
    | 'model_twice'
    | 'credential_needed'
    | 'credentials_max'
    | 'credential_twice'
    | 'channels_max_at_once'
    | 'channel_unknown'
    | 'channel_of_environment'
    | 'channel_remove_there'
    | 'settings_none_to_move'
    | 'channels_same'
    | 'settings_exist'
    | 'settings_proxy_lost'
    | 'settings_none_to_reset'
    | 'channel_stale'
    | 'channel_name_taken'
    | 'channels_max'
    | 'channel_base_url_length'
    | 'channel_times'
    | 'channel_name'
    | 'channel_headers_max'
    | 'channel_header_twice'
    | 'channel_header_name'
    | 'channel_header_ours'
    | 'channel_header_secret'
    | 'channel_header_value'
    | 'channel_dialect'
    | 'channel_not_spoken'
    | 'channel_fields_max'
    | 'channel_fields_large'
    | 'channel_field_twice'
    | 'channel_field_name'
    | 'channel_field_fixed'
    | 'channel_field_in_part'
    | 'channel_no_provider'
    | 'channel_credential_lost'
    | 'channel_no_credential'
    | 'channel_other_origin'
    | 'channel_credential_text'
    | 'channel_credential_form'
    | 'channel_address_unknown'
    | 'channel_stored_times'
    | 'channel_base_url'
    | 'channel_unusable'
    | 'channel_proxy_lost'
    | 'test_not_chat'
    | 'test_no_chat_model'
    | 'test_unreadable'
    | 'test_no_model'
    | 'list_status'
    | 'list_unreadable'
    | 'list_unknown'
    | 'list_failed'
    | 'warn_no_model'
    | 'warn_no_tag'
    | 'warn_cleared'
    | 'warn_same_credential'
    | 'warn_dead_routes'
    | 'warn_no_channel_left'
    | 'warn_weights'
    | 'warn_no_channel_yet'
    | 'warn_still_listed'
    | 'warn_own_prices'
    | 'warn_unlisted'
    | 'warn_unlisted_near'
    | 'price_field'
    | 'price_model'
    | 'price_says'
    | 'price_given'
    | 'price_must'
    | 'price_included'
    | 'price_cases'
    | 'price_max'
    | 'price_when'
    | 'price_what'
    | 'price_object'
    | 'price_unknown_field'
    | 'price_unknown_near'
    | 'price_free'
    | 'price_pattern'
    | 'price_provider'
    | 'price_provider_near'
    | 'price_rate'
    | 'price_fee'
    | 'price_class'
    | 'price_tokens'
    | 'price_hours'
    | 'price_day'
    | 'price_currency'
    | 'price_units'
    | 'price_converted'
    | 'price_names'
    | 'price_source'
    | 'call_field'
    | 'call_field_once'
    | 'call_field_spelling'
    | 'call_names_twice'
    | 'call_depth'
    | 'call_values'
    | 'call_form_boundary'
    | 'call_form'
    | 'call_form_text'
    | 'call_handshake'
    | 'call_not_text'
    | 'call_streams_max'
    | 'call_with_turns'
    | 'call_followers_max'
    | 'call_sockets_max'
    | 'call_free_tier'
    | 'call_share'
    | 'call_key_prefix'
    | 'call_service_token'
    | 'call_limit_concurrency'
    | 'call_limit_tokens_minute'
    | 'call_limit_tokens_day'
    | 'call_limit_requests_minute'
    | 'call_limit_requests_day'
    | 'call_later_minutes'
    | 'call_later_hours'
    | 'call_no_tags'
    | 'call_similar'
    | 'call_models_list'
    | 'call_no_channel'
    | 'call_may_be'
    | 'call_unread'
    | 'call_stored_url'
    | 'call_stored'
    | 'call_stored_resend'
    | 'call_stored_resend_file'
    | 'call_stored_omit'
    | 'call_changing'
    | 'call_price_class'
    | 'call_price_kind'
    | 'call_price_search'
    | 'call_price_service'
    | 'call_price_variant'
    | 'call_price_problem'
    | 'call_price_problem_variant'
    | 'call_cost'
    | 'call_cost_budget'
    | 'call_fits'
    | 'call_fits_never'
    | 'call_funds_ended'
    | 'call_and'
    | 'call_fallback_budget'
    | 'call_fallback_balance'
    | 'call_repeated'
    | 'call_answered'
    | 'call_losses'
    | 'call_source'
    | 'call_media'
    | 'call_response_gone'
    | 'call_item_gone'
    | 'call_background_size'
    | 'call_conversation_long'
    | 'call_stored_elsewhere'
    | 'call_previous_is'
    | 'call_channel_removed'
    | 'call_made_elsewhere'
    | 'call_not_background'
    | 'call_background_max'
    | 'call_files_max'
    | 'call_files_funds'
    | 'call_files_forbidden'
    | 'call_answer_large'
    | 'do_command'
    | 'no_data'
    | 'do_no_data'
    | 'shared_empty'
    | 'do_shared_empty'
    | 'lease_late'
    | 'do_lease_late'
    | 'clock_ahead'
    | 'clock_behind'
    | 'do_clock_wrong'
    | 'versions_differ'
    | 'do_versions_differ'
    | 'database_unreadable'
    | 'do_database_unreadable'
    | 'schema_later'
    | 'do_schema_later'
    | 'not_running'
    | 'not_answering'
    | 'not_answering_at_all'
    | 'do_not_answering'
    | 'not_ready'
    | 'do_not_ready'
    | 'ledger_drift'
    | 'store_full'
    | 'do_store_full'
    | 'unsettled_calls'
    | 'do_unsettled_calls'
    | 'accounts_frozen'
    | 'do_accounts_frozen'
    | 'holds_stuck'
    | 'do_holds_stuck'
    | 'our_errors'
    | 'do_our_errors'
    | 'overload'
    | 'do_overload'
    | 'last_failure'
    | 'credential_bad'
    | 'do_credential_bad'
    | 'quota_spent'
    | 'do_quota_spent'
    | 'channel_blocked'
    | 'do_channel_blocked'
    | 'price_unknown'
    | 'calls_failing'
    | 'audit_missed'
    | 'do_audit_missed'
    | 'loop_late'
    | 'do_loop_late'
    | 'log_large'
    | 'do_log_large'
    | 'backup_never'
    | 'backup_old'
    | 'do_backup_old'
    | 'metrics_deaf'
    | 'do_metrics_deaf'
    | 'set_up_open'
    | 'schema_earlier'
    | 'do_schema_earlier'
    | 'bodies_dropped'
    | 'do_bodies_dropped'
    | 'refused_calls'
    | 'do_refused_calls'
    | 'found_sum'
    | 'found_no_accounts'
    | 'found_balance'
    | 'found_held'
    | 'found_overdrawn'
    | 'found_budget_held'
    | 'found_budget_over'
    | 'found_call_open'
    | 'found_call_unrecorded'
    | 'found_call_lost'
    | 'found_call_twice'
    | 'found_call_cost'
    | 'found_call_shortfall'
    | 'found_call_account'
    | 'found_refund_amount'
    | 'found_refund_account'
    | 'found_code_open'
    | 'found_code'
    | 'found_day'
    | 'found_day_before'
    | 'found_parties'
    | 'found_transfers_missing'
    | 'found_transfers_more'
    | 'found_object_missing'
    | 'found_object_differs'
    | 'found_object_foreign'
    | 'found_backup_file'
    | 'found_backup_rows'
    | 'one_of'
    | 'type'
    | 'at_least'
    | 'at_most'
    | 'characters_min'
    | 'characters_max'
    | 'items_min'
    | 'items_max'
    | 'invalid'
  readonly values: Readonly<Record<string, JsonValue>>
}

export type Invitation = {
  readonly id: string
  readonly kind: 'join' | 'password'
  readonly email: string
  readonly role: 'member' | 'support' | 'admin' | 'owner'
  readonly account: string | null
  readonly accountRole: 'viewer' | 'developer' | 'manager' | null
  readonly by: string | null
  readonly state: 'open' | 'accepted' | 'revoked' | 'expired' | 'invalid'
  readonly made: string
  readonly expires: string
  readonly version: number
}

export type InvitationPreview = {
  readonly kind: 'join' | 'password'
  readonly email: string
  readonly site: string
  readonly role: 'member' | 'support' | 'admin' | 'owner'
  readonly account: string | null
  readonly accountRole: 'viewer' | 'developer' | 'manager' | null
  readonly expires: string
}

export type Invited = {
  readonly id: string
  readonly kind: 'join' | 'password'
  readonly email: string
  readonly role: 'member' | 'support' | 'admin' | 'owner'
  readonly account: string | null
  readonly accountRole: 'viewer' | 'developer' | 'manager' | null
  readonly by: string | null
  readonly state: 'open' | 'accepted' | 'revoked' | 'expired' | 'invalid'
  readonly made: string
  readonly expires: string
  readonly version: number
  readonly token: string
}

export type JsonValue = string | number | boolean | Readonly<Record<string, unknown>> | readonly unknown[] | null

export type Key = {
  readonly id: string
  readonly account: string
  readonly accountName: string | null
  readonly name: string
  readonly suffix: string
  readonly tier: string
  readonly qpm: number | null
  readonly state: 'active' | 'disabled' | 'expired' | 'revoked'
  readonly created: string
  readonly expires: string | null
  readonly revoked: string | null
  readonly disabled: boolean
  readonly oldTextUntil: string | null
  readonly allows: readonly string[] | null
  readonly denies: readonly string[] | null
  readonly requires: readonly string[] | null
  readonly endpoints: readonly string[] | null
  readonly addresses: readonly string[] | null
  readonly strictCap: boolean
  readonly keepsBodies: boolean
  readonly strict: boolean
  readonly explains: boolean
  readonly madeByMember: boolean
  readonly version: number
  readonly managedBy: 'file' | null
}

export type KeyBudgetLeft = {
  readonly scope: 'key' | 'account'
  readonly span: 'day' | 'month' | 'total'
  readonly cap: string
  readonly spent: string
  readonly held: string
  readonly left: string
  readonly resets: string | null
}

export type KeyLimitLeft = {
  readonly whose: string
  readonly resource: 'requests' | 'tokens' | 'concurrency'
  readonly span: 'minute' | 'day' | null
  readonly max: number
  readonly used: number
  readonly left: number
  readonly resets: string
}

export type KeyReport = {
  readonly id: string
  readonly name: string
  readonly account: string
  readonly tier: string
  readonly state: 'active' | 'disabled' | 'expired' | 'revoked'
  readonly expires: string | null
  readonly stops: readonly KeyStop[]
  readonly models: {
    readonly allowed: readonly string[] | null
    readonly allowedToAccount: readonly string[] | null
    readonly denied: readonly string[] | null
    readonly requiredTags: readonly string[] | null
  }
  readonly endpoints: readonly string[] | null
  readonly addresses: readonly string[] | null
  readonly strictCap: boolean
  readonly keepsBodies: boolean
  readonly limits: readonly KeyLimitLeft[]
  readonly budgets: readonly KeyBudgetLeft[]
  readonly funds: {
    readonly kind: 'prepaid' | 'postpaid'
    readonly frozen: boolean
    readonly balance: string
    readonly held: string
    readonly creditLimit: string
    readonly available: string | null
  }
}

export type KeyStop = { readonly code: string; readonly text: string; readonly until: string | null }

export type KeyUse = {
  readonly lastUsed: string | null
  readonly spent30d: string
  readonly budgets: readonly Budget[]
}

export type LedgerSummary = {
  readonly books: 'agree' | 'do not agree' | 'not looked at yet'
  readonly audited: string | null
  readonly findings: number
}

export type Limit = {
  readonly id: number
  readonly resource: 'requests' | 'tokens' | 'concurrency'
  readonly span: 'minute' | 'day' | null
  readonly amount: number
  readonly key: string | null
  readonly keyName: string | null
  readonly account: string | null
  readonly accountName: string | null
  readonly tier: string | null
  readonly model: string | null
  readonly per: readonly ('key' | 'account' | 'model')[]
  readonly version: number
  readonly managedBy: 'file' | null
}

export type ListedAccount = {
  readonly id: string
  readonly name: string
  readonly type: 'personal' | 'team'
  readonly kind: 'prepaid' | 'postpaid'
  readonly balance: string
  readonly held: string
  readonly creditLimit: string
  readonly available: string | null
  readonly keepsBodies: boolean
  readonly tier: string | null
  readonly allows: readonly string[] | null
  readonly denies: readonly string[] | null
  readonly frozen: boolean
  readonly frozenSince: string | null
  readonly created: string
  readonly version: number
  readonly managedBy: 'file' | null
  readonly use: AccountUse | null
}

export type ListedKey = {
  readonly id: string
  readonly account: string
  readonly accountName: string | null
  readonly name: string
  readonly suffix: string
  readonly tier: string
  readonly qpm: number | null
  readonly state: 'active' | 'disabled' | 'expired' | 'revoked'
  readonly created: string
  readonly expires: string | null
  readonly revoked: string | null
  readonly disabled: boolean
  readonly oldTextUntil: string | null
  readonly allows: readonly string[] | null
  readonly denies: readonly string[] | null
  readonly requires: readonly string[] | null
  readonly endpoints: readonly string[] | null
  readonly addresses: readonly string[] | null
  readonly strictCap: boolean
  readonly keepsBodies: boolean
  readonly strict: boolean
  readonly explains: boolean
  readonly madeByMember: boolean
  readonly version: number
  readonly managedBy: 'file' | null
  readonly use: KeyUse | null
}

export type Me = {
  readonly id: string | null
  readonly email: string | null
  readonly name: string
  readonly role: 'member' | 'support' | 'admin' | 'owner'
  readonly session: string
  readonly secondFactor: boolean
  readonly created: string | null
  readonly accounts: readonly {
    readonly account: string
    readonly name: string
    readonly role: 'viewer' | 'developer' | 'manager'
  }[]
  readonly preferences: Preferences
  readonly version: number
}

export type Member = {
  readonly user: string
  readonly email: string
  readonly name: string
  readonly role: 'viewer' | 'developer' | 'manager'
  readonly added: string
  readonly version: number
}

export type Membership = {
  readonly account: string
  readonly name: string
  readonly type: 'personal' | 'team'
  readonly role: 'viewer' | 'developer' | 'manager'
  readonly added: string
  readonly version: number
}

export type Model = {
  readonly id: string
  readonly provider: string
  readonly name: string
  readonly contextTokens: number | null
  readonly outputTokensMax: number | null
  readonly speaks: readonly string[]
  readonly capabilities: ModelTraits
  readonly price: {
    readonly version: number
    readonly rates: {
      readonly input?: string
      readonly cacheRead?: string
      readonly cacheWrite?: string
      readonly cacheWrite1h?: string
      readonly inputAudio?: string
      readonly cacheReadAudio?: string
      readonly inputImage?: string
      readonly cacheReadImage?: string
      readonly toolUse?: string
      readonly output?: string
      readonly reasoning?: string
      readonly outputAudio?: string
      readonly outputImage?: string
      readonly perRequest?: string
      readonly perSearch?: string
      readonly perImage?: string
      readonly perCharacter?: string
      readonly perSecond?: string
      readonly perFileSearch?: string
      readonly perCodeSession?: string
      readonly perGroundedCall?: string
    }
    readonly cases: number
  } | null
  readonly free: boolean
  readonly available: boolean
  readonly channels: readonly string[]
}

export type ModelPrice = {
  readonly model: string
  readonly origin: 'shipped' | 'operator'
  readonly version: number
  readonly price: WrittenPrice
  readonly made: string
  readonly inUse: boolean
  readonly managedBy: 'file' | null
}

export type ModelRoute = {
  readonly name: string
  readonly policy: string
  readonly members: readonly RouteMember[]
  readonly author: string
  readonly changed: string
  readonly version: number
  readonly managedBy: 'file' | null
}

export type ModelTraits = {
  readonly reads?: readonly ('text' | 'image' | 'audio' | 'file' | 'video')[]
  readonly thinking?: 'none' | 'effort' | 'level' | 'budget' | 'adaptive' | 'either'
  readonly hidesThinking?: boolean
  readonly tokensPerSecondMax?: number
  readonly pictureTokens?: number
  readonly stopsThinking?: boolean
  readonly efforts?: readonly ('none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max')[]
  readonly budgetMin?: number
  readonly budgetMax?: number
  readonly sampling?: boolean
  readonly samplingWithoutThinking?: boolean
  readonly penalties?: boolean
  readonly forcedTool?: boolean
  readonly schema?: boolean
  readonly schemaWithTools?: boolean
  readonly serverToolsWithFunctions?: boolean
  readonly richResults?: boolean
  readonly cacheMarks?: boolean
  readonly searches?: boolean
  readonly system?: boolean
  readonly prefill?: boolean
  readonly mediaTokens?: {
    readonly image?:
      | { readonly kind: 'fixed'; readonly tokens: number }
      | { readonly kind: 'tiles'; readonly base: number; readonly tile: number }
      | {
          readonly kind: 'patches'
          readonly side: number
          readonly patchesMax: number
          readonly highPatchesMax?: number
          readonly multiplier?: number
          readonly base?: number
        }
    readonly audioSecond?: number
    readonly videoFrame?: number
    readonly pdfPage?: number
    readonly pdfPagesMax?: number
  }
}

export type NewKey = {
  readonly id: string
  readonly account: string
  readonly accountName: string | null
  readonly name: string
  readonly suffix: string
  readonly tier: string
  readonly qpm: number | null
  readonly state: 'active' | 'disabled' | 'expired' | 'revoked'
  readonly created: string
  readonly expires: string | null
  readonly revoked: string | null
  readonly disabled: boolean
  readonly oldTextUntil: string | null
  readonly allows: readonly string[] | null
  readonly denies: readonly string[] | null
  readonly requires: readonly string[] | null
  readonly endpoints: readonly string[] | null
  readonly addresses: readonly string[] | null
  readonly strictCap: boolean
  readonly keepsBodies: boolean
  readonly strict: boolean
  readonly explains: boolean
  readonly madeByMember: boolean
  readonly version: number
  readonly managedBy: 'file' | null
  readonly key: string
}

export type NewServiceToken = {
  readonly id: string
  readonly name: string
  readonly suffix: string
  readonly role: 'support' | 'admin' | 'owner' | null
  readonly account: string | null
  readonly accountRole: 'viewer' | 'developer' | 'manager' | null
  readonly state: 'active' | 'expired' | 'revoked'
  readonly creator: string
  readonly created: string
  readonly expires: string | null
  readonly lastUsed: string | null
  readonly revoked: string | null
  readonly oldTextUntil: string | null
  readonly version: number
  readonly token: string
}

export type Overview = {
  readonly from: string
  readonly before: string
  readonly summedUp: number
  readonly step: 'minute' | 'hour' | 'day' | 'month'
  readonly current: PeriodFigures
  readonly previous: PeriodFigures
  readonly series: readonly SeriesPoint[]
  readonly top: {
    readonly models: TopList | null
    readonly keys: TopList | null
    readonly accounts: TopList | null
    readonly channels: TopList | null
  }
  readonly errors: ErrorList
  readonly account: Account | null
  readonly budgets: readonly Budget[] | null
  readonly channels: ChannelSummary | null
  readonly ledger: LedgerSummary | null
}

export type Percentiles = { readonly p50: number; readonly p90: number; readonly p95: number; readonly p99: number }

export type PeriodFigures = {
  readonly from: string
  readonly before: string
  readonly calls: number
  readonly errors: number
  readonly streamed: number
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cost: string
  readonly shortfall: string
  readonly refunded: string
  readonly cacheSavings: string
  readonly providerCost: string | null
  readonly margin: string | null
  readonly firstContentMs: Percentiles | null
  readonly durationMs: Percentiles | null
}

export type PlaygroundKey = {
  readonly id: string
  readonly name: string
  readonly account: string
  readonly key: string
  readonly expires: string
  readonly budget: string
}

export type Posting = {
  readonly kind: 'top_up' | 'gift' | 'adjustment' | 'refund'
  readonly account: string
  readonly amount: string
  readonly balance: string
  readonly ref: string
  readonly reference: string | null
  readonly repeated: boolean
}

export type Preferences = {
  readonly language: 'en' | 'zh' | null
  readonly zone: string | null
  readonly theme: 'system' | 'light' | 'dark' | null
  readonly density: 'dense' | 'comfortable' | null
}

export type Price = {
  readonly free: boolean
  readonly input?: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
  readonly cacheWrite1h?: string
  readonly inputAudio?: string
  readonly cacheReadAudio?: string
  readonly inputImage?: string
  readonly cacheReadImage?: string
  readonly toolUse?: string
  readonly output?: string
  readonly reasoning?: string
  readonly outputAudio?: string
  readonly outputImage?: string
  readonly perRequest?: string
  readonly perSearch?: string
  readonly perImage?: string
  readonly perCharacter?: string
  readonly perSecond?: string
  readonly perFileSearch?: string
  readonly perCodeSession?: string
  readonly perGroundedCall?: string
  readonly cases: readonly PriceCase[]
  readonly convertedFrom?: { readonly code: string; readonly unitsPerUsd: string }
}

export type PriceCase = {
  readonly class?: string
  readonly inputAbove?: number
  readonly hours?: readonly string[]
  readonly from?: string
  readonly input?: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
  readonly cacheWrite1h?: string
  readonly inputAudio?: string
  readonly cacheReadAudio?: string
  readonly inputImage?: string
  readonly cacheReadImage?: string
  readonly toolUse?: string
  readonly output?: string
  readonly reasoning?: string
  readonly outputAudio?: string
  readonly outputImage?: string
  readonly perRequest?: string
  readonly perSearch?: string
  readonly perImage?: string
  readonly perCharacter?: string
  readonly perSecond?: string
  readonly perFileSearch?: string
  readonly perCodeSession?: string
  readonly perGroundedCall?: string
}

export type PriceVersion = {
  readonly version: number
  readonly origin: 'shipped' | 'operator' | 'withdrawn'
  readonly price: WrittenPrice | null
  readonly author: string
  readonly made: string
}

export type Provider = {
  readonly id: string
  readonly name: string
  readonly from: 'shipped' | 'own' | 'own over shipped'
  readonly baseUrl: string
  readonly speaks: readonly string[]
  readonly tags: readonly string[]
  readonly models: number
  readonly channels: number
  readonly free: boolean
  readonly keyless: boolean
  readonly problem: string | null
  readonly problemHint: Hint | null
  readonly version: number
  readonly managedBy: 'file' | null
  readonly definition: ProviderDefinition
}

export type ProviderDefinition = {
  readonly id: string
  readonly name: string
  readonly website?: string
  readonly baseUrl: string
  readonly keyEnv: string
  readonly baseUrlEnv: string
  readonly speaks: Readonly<Record<string, string | readonly string[]>>
  readonly counts?: Readonly<Record<string, string>>
  readonly sign: string | Readonly<Record<string, string>>
  readonly quirks?: readonly string[]
  readonly basePathAliases?: readonly string[]
  readonly can?: {
    readonly streamUsage?: boolean
    readonly outputCap?: 'max_tokens' | 'max_completion_tokens'
    readonly capsThought?: boolean
    readonly keepsResponses?: boolean
    readonly keepsThreads?: boolean
    readonly labelsSessions?: boolean
    readonly billsWhenLeft?: boolean
    readonly chatFields?: readonly (
      | 'custom_tools'
      | 'prompt_cache_breakpoint'
      | 'prompt_cache_key'
      | 'random_seed'
      | 'refusal'
      | 'strict'
      | 'user'
      | 'verbosity'
    )[]
    readonly missingChatFields?: readonly (
      | 'frequency_penalty'
      | 'logit_bias'
      | 'logprobs'
      | 'n'
      | 'name'
      | 'parallel_tool_calls'
      | 'presence_penalty'
      | 'seed'
      | 'service_tier'
      | 'stop'
      | 'top_logprobs'
    )[]
    readonly callIdChars?: number
    readonly systemAnywhere?: boolean
    readonly userAfterTool?: boolean
  }
  readonly traits?: ModelTraits
  readonly times?: {
    readonly connectSeconds?: number
    readonly tlsSeconds?: number
    readonly firstContentSeconds?: number
    readonly betweenChunksSeconds?: number
    readonly totalSeconds?: number
  }
  readonly included?: readonly string[]
  readonly tags?: readonly string[]
  readonly makers?: Readonly<Record<string, string>>
  readonly modelList?: {
    readonly perTokens: 1 | 1000 | 1000000
    readonly price: { readonly input: string; readonly output: string }
    readonly ignored?: readonly string[]
    readonly contextTokens?: string
    readonly outputTokensMax?: string
  }
  readonly formerNames?: Readonly<Record<string, string>>
  readonly openModels?: boolean
  readonly free?: boolean
  readonly keyless?: boolean
  readonly localServer?: { readonly ownedBy?: string; readonly answers?: Readonly<Record<string, readonly string[]>> }
  readonly builtIn?: boolean
  readonly models: readonly ProviderModel[]
}

export type ProviderDefinitionChange = {
  readonly id?: string | null
  readonly name?: string | null
  readonly website?: string | null
  readonly baseUrl?: string | null
  readonly keyEnv?: string | null
  readonly baseUrlEnv?: string | null
  readonly speaks?: Readonly<Record<string, string | readonly string[]>> | null
  readonly counts?: Readonly<Record<string, string>> | null
  readonly sign?: string | Readonly<Record<string, string>> | null
  readonly quirks?: readonly string[] | null
  readonly basePathAliases?: readonly string[] | null
  readonly can?: {
    readonly streamUsage?: boolean
    readonly outputCap?: 'max_tokens' | 'max_completion_tokens'
    readonly capsThought?: boolean
    readonly keepsResponses?: boolean
    readonly keepsThreads?: boolean
    readonly labelsSessions?: boolean
    readonly billsWhenLeft?: boolean
    readonly chatFields?: readonly (
      | 'custom_tools'
      | 'prompt_cache_breakpoint'
      | 'prompt_cache_key'
      | 'random_seed'
      | 'refusal'
      | 'strict'
      | 'user'
      | 'verbosity'
    )[]
    readonly missingChatFields?: readonly (
      | 'frequency_penalty'
      | 'logit_bias'
      | 'logprobs'
      | 'n'
      | 'name'
      | 'parallel_tool_calls'
      | 'presence_penalty'
      | 'seed'
      | 'service_tier'
      | 'stop'
      | 'top_logprobs'
    )[]
    readonly callIdChars?: number
    readonly systemAnywhere?: boolean
    readonly userAfterTool?: boolean
  } | null
  readonly traits?: ModelTraits | null
  readonly times?: {
    readonly connectSeconds?: number
    readonly tlsSeconds?: number
    readonly firstContentSeconds?: number
    readonly betweenChunksSeconds?: number
    readonly totalSeconds?: number
  } | null
  readonly included?: readonly string[] | null
  readonly tags?: readonly string[] | null
  readonly makers?: Readonly<Record<string, string>> | null
  readonly modelList?: {
    readonly perTokens: 1 | 1000 | 1000000
    readonly price: { readonly input: string; readonly output: string }
    readonly ignored?: readonly string[]
    readonly contextTokens?: string
    readonly outputTokensMax?: string
  } | null
  readonly formerNames?: Readonly<Record<string, string>> | null
  readonly openModels?: boolean | null
  readonly free?: boolean | null
  readonly keyless?: boolean | null
  readonly localServer?: {
    readonly ownedBy?: string
    readonly answers?: Readonly<Record<string, readonly string[]>>
  } | null
  readonly builtIn?: boolean | null
  readonly models?: readonly ProviderModel[] | null
}

export type ProviderModel = {
  readonly id: string
  readonly name?: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
  readonly speaks?: readonly string[]
  readonly free?: boolean
  readonly price?: WrittenPrice
  readonly traits?: ModelTraits
  readonly times?: {
    readonly firstContentSeconds?: number
    readonly betweenChunksSeconds?: number
    readonly totalSeconds?: number
  }
  readonly billsWhenLeft?: boolean
}

export type PublicModel = {
  readonly id: string
  readonly provider: string
  readonly name: string
  readonly contextTokens: number | null
  readonly outputTokensMax: number | null
  readonly speaks: readonly string[]
  readonly reads: readonly ('text' | 'image' | 'audio' | 'file' | 'video')[] | null
  readonly can: {
    readonly think: boolean | null
    readonly tools: boolean | null
    readonly schema: boolean | null
    readonly search: boolean | null
  }
  readonly price: Price
}

export type PublicModels = { readonly data: readonly PublicModel[]; readonly names: readonly PublicName[] }

export type PublicName = {
  readonly id: string
  readonly contextTokens: number | null
  readonly outputTokensMax: number | null
}

export type PublicPrice = {
  readonly model: string
  readonly free: boolean
  readonly input?: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
  readonly cacheWrite1h?: string
  readonly inputAudio?: string
  readonly cacheReadAudio?: string
  readonly inputImage?: string
  readonly cacheReadImage?: string
  readonly toolUse?: string
  readonly output?: string
  readonly reasoning?: string
  readonly outputAudio?: string
  readonly outputImage?: string
  readonly perRequest?: string
  readonly perSearch?: string
  readonly perImage?: string
  readonly perCharacter?: string
  readonly perSecond?: string
  readonly perFileSearch?: string
  readonly perCodeSession?: string
  readonly perGroundedCall?: string
  readonly cases: readonly PriceCase[]
  readonly convertedFrom?: { readonly code: string; readonly unitsPerUsd: string }
}

export type PublicPricing = {
  readonly currency: 'USD'
  readonly unit: 'million tokens'
  readonly tier: string | null
  readonly tiers: readonly { readonly name: string; readonly multiplier: string }[]
  readonly data: readonly PublicPrice[]
}

export type PublicProvider = {
  readonly id: string
  readonly name: string
  readonly website: string | null
  readonly speaks: readonly string[]
  readonly models: number
  readonly status: 'up' | 'degraded' | 'down'
}

export type PublicProviders = { readonly data: readonly PublicProvider[] }

export type PublicSettings = {
  readonly name: string
  readonly notice: string | null
  readonly registration: boolean
  readonly logo: string | null
  readonly accentHue: number | null
  readonly supportUrl: string | null
  readonly howToPay: { readonly en: string; readonly zh: string } | null
  readonly defaultLanguage: 'en' | 'zh' | null
  readonly reportingZone: string | null
  readonly version: string
}

export type CallRecord = {
  readonly id: string
  readonly time: string
  readonly account: string
  readonly accountName: string | null
  readonly key: string
  readonly keyName: string | null
  readonly keySuffix: string | null
  readonly dialect: string
  readonly model: string | null
  readonly channel: string | null
  readonly status: number
  readonly error: string | null
  readonly outcome: string
  readonly streamed: boolean
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cost: string
  readonly shortfall: string
  readonly firstContentMs: number | null
  readonly durationMs: number
  readonly endUser: string | null
  readonly loss: readonly string[]
  readonly conversation: string | null
  readonly seq?: number
}

export type RecordAttempt = {
  readonly channel: string
  readonly model: string | null
  readonly atMs: number | null
  readonly ms: number
  readonly firstMs: number | null
  readonly status: number | null
  readonly verdict: string
}

export type RecordDeletion = {
  readonly id: number
  readonly account: string | null
  readonly key: string | null
  readonly ofEndUser: boolean
  readonly from: string | null
  readonly before: string
  readonly deleted: number
  readonly author: string
  readonly made: string
  readonly done: string | null
}

export type RecordInFull = {
  readonly id: string
  readonly time: string
  readonly account: string
  readonly accountName: string | null
  readonly key: string
  readonly keyName: string | null
  readonly keySuffix: string | null
  readonly dialect: string
  readonly model: string | null
  readonly channel: string | null
  readonly status: number
  readonly error: string | null
  readonly outcome: string
  readonly streamed: boolean
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cost: string
  readonly shortfall: string
  readonly firstContentMs: number | null
  readonly durationMs: number
  readonly endUser: string | null
  readonly loss: readonly string[]
  readonly conversation: string | null
  readonly seq?: number
  readonly requestedModel: string | null
  readonly rule: string
  readonly usageSource: string
  readonly held: string
  readonly priceVersion: number | null
  readonly lines: readonly RecordLine[]
  readonly timeline: readonly RecordTimelineSpan[]
  readonly tags: Readonly<Record<string, string>>
  readonly requestHash: string | null
  readonly upstreamHash: string | null
  readonly attempts: readonly RecordAttempt[] | null
  readonly routing: RecordRouting | null
  readonly transfers: readonly RecordTransfer[]
}

export type RecordLimit = {
  readonly resource: string
  readonly span: string | null
  readonly remaining: number
  readonly limit: number
}

export type RecordLine = { readonly what: string; readonly count: number; readonly rate: string }

export type RecordRouting = {
  readonly candidates: number | null
  readonly policy: string | null
  readonly by: string | null
  readonly affinity: string | null
  readonly dropped: Readonly<Record<string, number>>
  readonly limits: readonly RecordLimit[]
  readonly overrides: readonly string[]
}

export type RecordTimelineSpan = {
  readonly stage: 'auth' | 'read' | 'limit' | 'route' | 'hold' | 'wait' | 'adapt' | 'forward' | 'cost'
  readonly atMs: number | null
  readonly ms: number
}

export type RecordTransfer = {
  readonly kind: string
  readonly amount: string
  readonly made: string
  readonly reference: string | null
  readonly author: string | null
}

export type RouteMember = { readonly model: string; readonly priority: number; readonly weight: number }

export type SearchHit = {
  readonly kind:
    | 'account'
    | 'person'
    | 'key'
    | 'channel'
    | 'provider'
    | 'model'
    | 'route'
    | 'tier'
    | 'call'
    | 'webhook'
    | 'code_batch'
  readonly id: string
  readonly name: string
  readonly detail: string | null
}

export type SeriesGroup = {
  readonly id: string | null
  readonly name: string | null
  readonly others: boolean
  readonly data: readonly GroupPoint[]
}

export type SeriesPoint = {
  readonly at: string
  readonly calls: number
  readonly errors: number
  readonly streamed: number
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cost: string
  readonly shortfall: string
  readonly refunded: string
  readonly cacheSavings: string
  readonly providerCost: string | null
  readonly margin: string | null
  readonly firstContentMs: Percentiles | null
  readonly durationMs: Percentiles | null
}

export type ServiceToken = {
  readonly id: string
  readonly name: string
  readonly suffix: string
  readonly role: 'support' | 'admin' | 'owner' | null
  readonly account: string | null
  readonly accountRole: 'viewer' | 'developer' | 'manager' | null
  readonly state: 'active' | 'expired' | 'revoked'
  readonly creator: string
  readonly created: string
  readonly expires: string | null
  readonly lastUsed: string | null
  readonly revoked: string | null
  readonly oldTextUntil: string | null
  readonly version: number
}

export type Session = {
  readonly id: string
  readonly current: boolean
  readonly made: string
  readonly seen: string
  readonly expires: string
  readonly ended: string | null
  readonly endedWhy: string | null
  readonly address: string
  readonly agent: string
}

export type Settings = {
  readonly siteName: string
  readonly notice: string
  readonly registration: 'off' | 'open'
  readonly allowedDomains: readonly string[]
  readonly invitations: 'admins' | 'managers'
  readonly defaultTier: string
  readonly startingCredit: string
  readonly retentionDays: number
  readonly logo: string | null
  readonly accentHue: number | null
  readonly supportUrl: string | null
  readonly howToPay: { readonly en: string; readonly zh: string } | null
  readonly defaultLanguage: 'en' | 'zh' | null
  readonly reportingZone: string | null
  readonly version: number
  readonly managed: readonly string[]
}

export type SignedIn = {
  readonly accessToken: string
  readonly expiresInSeconds: number
  readonly user: {
    readonly id: string
    readonly email: string
    readonly name: string
    readonly role: 'member' | 'support' | 'admin' | 'owner'
  }
}

export type Site = {
  readonly name: string
  readonly notice: string | null
  readonly registration: boolean
  readonly logo: string | null
  readonly accentHue: number | null
  readonly supportUrl: string | null
  readonly howToPay: { readonly en: string; readonly zh: string } | null
  readonly defaultLanguage: 'en' | 'zh' | null
  readonly reportingZone: string | null
  readonly version: string
  readonly build: string | null
}

export type Start = {
  readonly setupNeeded: boolean
  readonly site: Site
  readonly signedIn?: { readonly accessToken: string; readonly expiresInSeconds: number }
  readonly me?: Me
}

export type StatementLine = {
  readonly made: string
  readonly kind: 'charge' | 'shortfall' | 'top_up' | 'gift' | 'adjustment' | 'refund' | 'redemption' | 'opening'
  readonly amount: string
  readonly balance: string
  readonly with: string
  readonly ref: string
  readonly reference: string | null
  readonly author: string | null
}

export type Tier = {
  readonly name: string
  readonly qpm: number
  readonly pricePerMille: number
  readonly accountQpm: number
  readonly accountConcurrency: number
  readonly version: number
  readonly managedBy: 'file' | null
  readonly keys: number | null
}

export type TopList = { readonly from: string; readonly before: string; readonly data: readonly TopRow[] }

export type TopRow = {
  readonly id: string | null
  readonly name: string | null
  readonly calls: number
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cost: string
}

export type Trial = {
  readonly channel: string
  readonly model: string
  readonly dialect: string
  readonly ok: boolean
  readonly status: number | null
  readonly verdict: string
  readonly advice: string
  readonly timings: { readonly headMs: number | null; readonly totalMs: number }
  readonly sent: {
    readonly method: string
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    readonly overrides: readonly string[]
  }
  readonly received: { readonly contentType: string; readonly body: string } | null
  readonly fault: string | null
  readonly faultHint: Hint | null
}

export type TrialBalance = {
  readonly own: readonly {
    readonly account: string
    readonly name: string
    readonly about: string
    readonly balance: string
  }[]
  readonly customers: readonly {
    readonly kind: 'prepaid' | 'postpaid'
    readonly accounts: number
    readonly balance: string
    readonly held: string
  }[]
  readonly sum: string
  readonly transfers: number
}

export type TroubledChannel = {
  readonly id: string
  readonly name: string | null
  readonly state: 'enabled' | 'disabled' | 'unusable' | 'gone'
  readonly health: string | null
  readonly availableInMs: number | null
}

export type UsableModel = {
  readonly name: string
  readonly kind: 'model' | 'route'
  readonly allowed: boolean
  readonly reason: string | null
}

export type User = {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role: 'member' | 'support' | 'admin' | 'owner'
  readonly disabled: boolean
  readonly removed: boolean
  readonly secondFactor: boolean
  readonly accounts: number
  readonly lastSignIn: string | null
  readonly created: string
  readonly version: number
}

export type Webhook = {
  readonly id: string
  readonly account: string | null
  readonly accountName: string | null
  readonly url: string
  readonly events: readonly (
    | 'balance.low'
    | 'balance.empty'
    | 'budget.low'
    | 'key.revoked'
    | 'account.frozen'
    | 'channel.down'
    | 'channel.up'
    | 'ledger.drift'
  )[]
  readonly disabled: boolean
  readonly secretFrom: string | null
  readonly secretMark: string | null
  readonly waiting: number
  readonly dropped: number
  readonly author: string
  readonly created: string
  readonly version: number
  readonly managedBy: 'file' | null
}

export type WebhookDelivery = {
  readonly id: string
  readonly event: string
  readonly state: 'delivered' | 'waiting' | 'given up'
  readonly made: string
  readonly attempts: number
  readonly tried: string | null
  readonly status: number | null
  readonly ms: number | null
  readonly error: string | null
  readonly errorHint: Hint | null
  readonly next: string | null
}

export type WebhookDeliveryInFull = {
  readonly id: string
  readonly event: string
  readonly state: 'delivered' | 'waiting' | 'given up'
  readonly made: string
  readonly attempts: number
  readonly tried: string | null
  readonly status: number | null
  readonly ms: number | null
  readonly error: string | null
  readonly errorHint: Hint | null
  readonly next: string | null
  readonly request: WebhookRequest
}

export type WebhookRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type WrittenPrice = {
  readonly input: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
  readonly cacheWrite1h?: string
  readonly inputAudio?: string
  readonly cacheReadAudio?: string
  readonly inputImage?: string
  readonly cacheReadImage?: string
  readonly toolUse?: string
  readonly output: string
  readonly reasoning?: string
  readonly outputAudio?: string
  readonly outputImage?: string
  readonly perRequest?: string
  readonly perSearch?: string
  readonly perImage?: string
  readonly perCharacter?: string
  readonly perSecond?: string
  readonly perFileSearch?: string
  readonly perCodeSession?: string
  readonly perGroundedCall?: string
  readonly cases?: readonly {
    readonly class?: string
    readonly inputAbove?: number
    readonly hours?: readonly string[]
    readonly from?: string
    readonly input?: string
    readonly cacheRead?: string
    readonly cacheWrite?: string
    readonly cacheWrite1h?: string
    readonly inputAudio?: string
    readonly cacheReadAudio?: string
    readonly inputImage?: string
    readonly cacheReadImage?: string
    readonly toolUse?: string
    readonly output?: string
    readonly reasoning?: string
    readonly outputAudio?: string
    readonly outputImage?: string
    readonly perRequest?: string
    readonly perSearch?: string
    readonly perImage?: string
    readonly perCharacter?: string
    readonly perSecond?: string
    readonly perFileSearch?: string
    readonly perCodeSession?: string
    readonly perGroundedCall?: string
  }[]
  readonly currency?: { readonly code: string; readonly unitsPerUsd: string; readonly converted?: true }
  readonly source?: string
  readonly included?: readonly string[]
}

export interface Operations {
  'GET /api/public/models': {
    request: object
    answer: PublicModels
  }
  'GET /api/public/providers': {
    request: object
    answer: PublicProviders
  }
  'GET /api/public/pricing': {
    request: { readonly query?: { readonly tier?: string } }
    answer: PublicPricing
  }
  'GET /api/public/settings': {
    request: object
    answer: PublicSettings
  }
  'GET /api/auth/setup': {
    request: object
    answer: { readonly needed: boolean }
  }
  'POST /api/auth/setup': {
    request: {
      readonly body: {
        readonly token: string
        readonly name: string
        readonly email: string
        readonly password: string
      }
    }
    answer: SignedIn
  }
  'POST /api/auth/sign-in': {
    request: { readonly body: { readonly email: string; readonly password: string; readonly code?: string } }
    answer: SignedIn
  }
  'POST /api/auth/refresh': {
    request: object
    answer: SignedIn
  }
  'POST /api/auth/session': {
    request: object
    answer: Start
  }
  'POST /api/auth/sign-out': {
    request: object
    answer: undefined
  }
  'POST /api/auth/sign-out-everywhere': {
    request: object
    answer: undefined
  }
  'POST /api/auth/invitation/look': {
    request: { readonly body: { readonly token: string } }
    answer: InvitationPreview
  }
  'POST /api/auth/invitation': {
    request: { readonly body: { readonly token: string; readonly name: string; readonly password: string } }
    answer: SignedIn
  }
  'POST /api/auth/password': {
    request: { readonly body: { readonly token: string; readonly password: string } }
    answer: undefined
  }
  'POST /api/auth/registration': {
    request: { readonly body: { readonly name: string; readonly email: string; readonly password: string } }
    answer: SignedIn
  }
  'GET /api/web/me': {
    request: object
    answer: Me
  }
  'PATCH /api/web/me': {
    request: {
      readonly body: {
        readonly name?: string
        readonly email?: string
        readonly currentPassword?: string
        readonly preferences?: {
          readonly language?: 'en' | 'zh' | null
          readonly zone?: string | null
          readonly theme?: 'system' | 'light' | 'dark' | null
          readonly density?: 'dense' | 'comfortable' | null
        }
      }
    }
    answer: Me
  }
  'POST /api/web/me/password': {
    request: { readonly body: { readonly currentPassword: string; readonly password: string } }
    answer: SignedIn
  }
  'POST /api/web/me/second-factor': {
    request: { readonly body: { readonly currentPassword: string } }
    answer: { readonly secret: string; readonly url: string }
  }
  'POST /api/web/me/second-factor/confirm': {
    request: { readonly body: { readonly code: string } }
    answer: { readonly recoveryCodes: readonly string[] }
  }
  'POST /api/web/me/recovery-codes': {
    request: { readonly body: { readonly currentPassword: string } }
    answer: { readonly recoveryCodes: readonly string[] }
  }
  'POST /api/web/me/second-factor/remove': {
    request: { readonly body: { readonly currentPassword: string } }
    answer: undefined
  }
  'GET /api/web/sessions': {
    request: {
      readonly query?: {
        readonly ended?: string
        readonly sort?: 'made' | '-made' | 'seen' | '-seen'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Session[]; readonly next: string | null; readonly limit: number }
  }
  'DELETE /api/web/sessions': {
    request: object
    answer: { readonly ended: number }
  }
  'DELETE /api/web/sessions/{session}': {
    request: { readonly params: { readonly session: string } }
    answer: undefined
  }
  'GET /api/web/users': {
    request: {
      readonly query?: {
        readonly email?: string
        readonly name?: string
        readonly role?: 'member' | 'support' | 'admin' | 'owner'
        readonly disabled?: string
        readonly removed?: string
        readonly sort?: 'created' | '-created' | 'email' | '-email' | 'name' | '-name'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly User[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/users/{user}': {
    request: { readonly params: { readonly user: string } }
    answer: User
  }
  'PATCH /api/web/users/{user}': {
    request: {
      readonly params: { readonly user: string }
      readonly body: {
        readonly name?: string
        readonly email?: string
        readonly role?: 'member' | 'support' | 'admin' | 'owner'
        readonly disabled?: boolean
      }
    }
    answer: User
  }
  'DELETE /api/web/users/{user}': {
    request: { readonly params: { readonly user: string } }
    answer: undefined
  }
  'POST /api/web/users/{user}/password-reset': {
    request: { readonly params: { readonly user: string } }
    answer: Invited
  }
  'GET /api/web/users/{user}/accounts': {
    request: {
      readonly params: { readonly user: string }
      readonly query?: {
        readonly sort?: 'added' | '-added' | 'name' | '-name'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Membership[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/users/{user}/sessions': {
    request: {
      readonly params: { readonly user: string }
      readonly query?: {
        readonly ended?: string
        readonly sort?: 'made' | '-made' | 'seen' | '-seen'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Session[]; readonly next: string | null; readonly limit: number }
  }
  'DELETE /api/web/users/{user}/sessions': {
    request: { readonly params: { readonly user: string } }
    answer: { readonly ended: number }
  }
  'DELETE /api/web/users/{user}/sessions/{session}': {
    request: { readonly params: { readonly user: string; readonly session: string } }
    answer: undefined
  }
  'GET /api/web/accounts/{account}/members': {
    request: {
      readonly params: { readonly account: string }
      readonly query?: {
        readonly sort?: 'added' | '-added' | 'email' | '-email'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Member[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/accounts/{account}/members': {
    request: {
      readonly params: { readonly account: string }
      readonly body: { readonly user: string; readonly role: 'viewer' | 'developer' | 'manager' }
    }
    answer: Member
  }
  'PATCH /api/web/accounts/{account}/members/{user}': {
    request: {
      readonly params: { readonly account: string; readonly user: string }
      readonly body: { readonly role: 'viewer' | 'developer' | 'manager' }
    }
    answer: Member
  }
  'DELETE /api/web/accounts/{account}/members/{user}': {
    request: { readonly params: { readonly account: string; readonly user: string } }
    answer: undefined
  }
  'GET /api/web/invitations': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly email?: string
        readonly open?: string
        readonly sort?: 'made' | '-made' | 'expires' | '-expires'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Invitation[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/invitations': {
    request: {
      readonly body: {
        readonly email: string
        readonly role?: 'member' | 'support' | 'admin' | 'owner'
        readonly account?: string
        readonly accountRole?: 'viewer' | 'developer' | 'manager'
        readonly days?: number
      }
    }
    answer: Invited
  }
  'POST /api/web/invitations/accept': {
    request: { readonly body: { readonly token: string } }
    answer: undefined
  }
  'DELETE /api/web/invitations/{invitation}': {
    request: { readonly params: { readonly invitation: string } }
    answer: undefined
  }
  'GET /api/web/service-tokens': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly name?: string
        readonly state?: 'active' | 'expired' | 'revoked'
        readonly creator?: string
        readonly sort?: 'created' | '-created' | 'name' | '-name'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly ServiceToken[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/service-tokens': {
    request: {
      readonly body: {
        readonly name: string
        readonly role?: 'support' | 'admin' | 'owner'
        readonly account?: string
        readonly accountRole?: 'viewer' | 'developer' | 'manager'
        readonly expires?: string | null
      }
    }
    answer: NewServiceToken
  }
  'GET /api/web/service-tokens/{token}': {
    request: { readonly params: { readonly token: string } }
    answer: ServiceToken
  }
  'PATCH /api/web/service-tokens/{token}': {
    request: {
      readonly params: { readonly token: string }
      readonly body: { readonly name?: string; readonly expires?: string | null }
    }
    answer: ServiceToken
  }
  'DELETE /api/web/service-tokens/{token}': {
    request: { readonly params: { readonly token: string } }
    answer: undefined
  }
  'POST /api/web/service-tokens/{token}/rotate': {
    request: { readonly params: { readonly token: string }; readonly body: { readonly overlapSeconds?: number } }
    answer: NewServiceToken
  }
  'GET /api/web/settings': {
    request: object
    answer: Settings
  }
  'PATCH /api/web/settings': {
    request: {
      readonly body: {
        readonly siteName?: string | null
        readonly notice?: string | null
        readonly registration?: 'off' | 'open' | null
        readonly allowedDomains?: readonly string[] | null
        readonly invitations?: 'admins' | 'managers' | null
        readonly defaultTier?: string | null
        readonly startingCredit?: string | null
        readonly retentionDays?: number | null
        readonly logo?: string | null | null
        readonly accentHue?: number | null | null
        readonly supportUrl?: string | null | null
        readonly howToPay?: { readonly en: string; readonly zh: string } | null | null
        readonly defaultLanguage?: 'en' | 'zh' | null | null
        readonly reportingZone?: string | null | null
      }
    }
    answer: Settings
  }
  'GET /api/web/gateway': {
    request: object
    answer: Gateway
  }
  'GET /api/web/tiers': {
    request: {
      readonly query?: {
        readonly sort?: 'name' | '-name' | 'qpm' | '-qpm'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Tier[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/tiers': {
    request: {
      readonly body: {
        readonly name: string
        readonly qpm: number
        readonly pricePerMille?: number
        readonly accountQpm?: number
        readonly accountConcurrency?: number
      }
    }
    answer: Tier
  }
  'GET /api/web/tiers/{tier}': {
    request: { readonly params: { readonly tier: string } }
    answer: Tier
  }
  'PATCH /api/web/tiers/{tier}': {
    request: {
      readonly params: { readonly tier: string }
      readonly body: {
        readonly qpm?: number
        readonly pricePerMille?: number
        readonly accountQpm?: number
        readonly accountConcurrency?: number
      }
    }
    answer: Tier
  }
  'DELETE /api/web/tiers/{tier}': {
    request: { readonly params: { readonly tier: string } }
    answer: undefined
  }
  'GET /api/web/keys': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly name?: string
        readonly state?: 'active' | 'disabled' | 'expired' | 'revoked'
        readonly tier?: string
        readonly suffix?: string
        readonly from?: string
        readonly before?: string
        readonly use?: 'true' | 'false'
        readonly sort?: 'created' | '-created' | 'name' | '-name'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly ListedKey[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/keys': {
    request: {
      readonly body: {
        readonly id?: string
        readonly name?: string
        readonly tier?: string
        readonly qpm?: number | null
        readonly expires?: string | null
        readonly allows?: readonly string[] | null
        readonly denies?: readonly string[] | null
        readonly requires?: readonly string[] | null
        readonly endpoints?:
          | readonly (
              | 'chat'
              | 'messages'
              | 'responses'
              | 'gemini'
              | 'ark'
              | 'completions'
              | 'embeddings'
              | 'images'
              | 'audio'
              | 'rerank'
              | 'moderations'
              | 'count_tokens'
              | 'files'
              | 'tasks'
              | 'models'
            )[]
          | null
        readonly addresses?: readonly string[] | null
        readonly strictCap?: boolean
        readonly keepsBodies?: boolean
        readonly strict?: boolean
        readonly explains?: boolean
        readonly disabled?: boolean
        readonly account?: string
        readonly madeByMember?: boolean
        readonly credit?: string
      }
    }
    answer: {
      readonly id: string
      readonly account: string
      readonly accountName: string | null
      readonly name: string
      readonly suffix: string
      readonly tier: string
      readonly qpm: number | null
      readonly state: 'active' | 'disabled' | 'expired' | 'revoked'
      readonly created: string
      readonly expires: string | null
      readonly revoked: string | null
      readonly disabled: boolean
      readonly oldTextUntil: string | null
      readonly allows: readonly string[] | null
      readonly denies: readonly string[] | null
      readonly requires: readonly string[] | null
      readonly endpoints: readonly string[] | null
      readonly addresses: readonly string[] | null
      readonly strictCap: boolean
      readonly keepsBodies: boolean
      readonly strict: boolean
      readonly explains: boolean
      readonly madeByMember: boolean
      readonly version: number
      readonly managedBy: 'file' | null
      readonly key: string
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/keys/{key}': {
    request: { readonly params: { readonly key: string } }
    answer: Key
  }
  'PATCH /api/web/keys/{key}': {
    request: {
      readonly params: { readonly key: string }
      readonly body: {
        readonly name?: string
        readonly tier?: string
        readonly qpm?: number | null
        readonly expires?: string | null
        readonly allows?: readonly string[] | null
        readonly denies?: readonly string[] | null
        readonly requires?: readonly string[] | null
        readonly endpoints?:
          | readonly (
              | 'chat'
              | 'messages'
              | 'responses'
              | 'gemini'
              | 'ark'
              | 'completions'
              | 'embeddings'
              | 'images'
              | 'audio'
              | 'rerank'
              | 'moderations'
              | 'count_tokens'
              | 'files'
              | 'tasks'
              | 'models'
            )[]
          | null
        readonly addresses?: readonly string[] | null
        readonly strictCap?: boolean
        readonly keepsBodies?: boolean
        readonly strict?: boolean
        readonly explains?: boolean
        readonly disabled?: boolean
      }
    }
    answer: {
      readonly id: string
      readonly account: string
      readonly accountName: string | null
      readonly name: string
      readonly suffix: string
      readonly tier: string
      readonly qpm: number | null
      readonly state: 'active' | 'disabled' | 'expired' | 'revoked'
      readonly created: string
      readonly expires: string | null
      readonly revoked: string | null
      readonly disabled: boolean
      readonly oldTextUntil: string | null
      readonly allows: readonly string[] | null
      readonly denies: readonly string[] | null
      readonly requires: readonly string[] | null
      readonly endpoints: readonly string[] | null
      readonly addresses: readonly string[] | null
      readonly strictCap: boolean
      readonly keepsBodies: boolean
      readonly strict: boolean
      readonly explains: boolean
      readonly madeByMember: boolean
      readonly version: number
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'DELETE /api/web/keys/{key}': {
    request: { readonly params: { readonly key: string } }
    answer: undefined
  }
  'POST /api/web/keys/find': {
    request: { readonly body: { readonly key: string } }
    answer: Key
  }
  'POST /api/web/keys/{key}/rotate': {
    request: { readonly params: { readonly key: string }; readonly body: { readonly overlapSeconds?: number } }
    answer: NewKey
  }
  'POST /api/web/keys/bulk': {
    request: { readonly body: { readonly action: 'disable' | 'enable' | 'revoke'; readonly keys: readonly string[] } }
    answer: { readonly data: readonly BulkResult[] }
  }
  'POST /api/web/keys/{key}/explain': {
    request: {
      readonly params: { readonly key: string }
      readonly body: {
        readonly path: string
        readonly body: Readonly<Record<string, JsonValue>>
        readonly headers?: Readonly<Record<string, string>>
        readonly address?: string
      }
    }
    answer: Explanation
  }
  'GET /api/web/keys/{key}/report': {
    request: { readonly params: { readonly key: string } }
    answer: KeyReport
  }
  'GET /api/web/keys/{key}/models': {
    request: {
      readonly params: { readonly key: string }
      readonly query?: {
        readonly allowed?: string
        readonly text?: string
        readonly sort?: 'name' | '-name'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly UsableModel[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/accounts/{account}/models': {
    request: {
      readonly params: { readonly account: string }
      readonly query?: {
        readonly allowed?: string
        readonly text?: string
        readonly sort?: 'name' | '-name'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly UsableModel[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/accounts/{account}/playground-key': {
    request: { readonly params: { readonly account: string }; readonly body: { readonly budget?: string } }
    answer: PlaygroundKey
  }
  'GET /api/web/accounts': {
    request: {
      readonly query?: {
        readonly name?: string
        readonly type?: 'personal' | 'team'
        readonly kind?: 'prepaid' | 'postpaid'
        readonly frozen?: 'true' | 'false'
        readonly use?: 'true' | 'false'
        readonly sort?: 'created' | '-created' | 'name' | '-name' | 'balance' | '-balance'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly ListedAccount[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/accounts': {
    request: {
      readonly body: {
        readonly id?: string
        readonly name: string
        readonly kind?: 'prepaid' | 'postpaid'
        readonly creditLimit?: string
        readonly keepsBodies?: boolean
        readonly tier?: string | null
        readonly allows?: readonly string[] | null
        readonly denies?: readonly string[] | null
        readonly type?: 'personal' | 'team'
        readonly uniqueName?: boolean
      }
    }
    answer: {
      readonly id: string
      readonly name: string
      readonly type: 'personal' | 'team'
      readonly kind: 'prepaid' | 'postpaid'
      readonly balance: string
      readonly held: string
      readonly creditLimit: string
      readonly available: string | null
      readonly keepsBodies: boolean
      readonly tier: string | null
      readonly allows: readonly string[] | null
      readonly denies: readonly string[] | null
      readonly frozen: boolean
      readonly frozenSince: string | null
      readonly created: string
      readonly version: number
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/accounts/{account}': {
    request: { readonly params: { readonly account: string } }
    answer: Account
  }
  'PATCH /api/web/accounts/{account}': {
    request: {
      readonly params: { readonly account: string }
      readonly body: {
        readonly name?: string
        readonly kind?: 'prepaid' | 'postpaid'
        readonly creditLimit?: string
        readonly keepsBodies?: boolean
        readonly tier?: string | null
        readonly allows?: readonly string[] | null
        readonly denies?: readonly string[] | null
        readonly frozen?: boolean
      }
    }
    answer: {
      readonly id: string
      readonly name: string
      readonly type: 'personal' | 'team'
      readonly kind: 'prepaid' | 'postpaid'
      readonly balance: string
      readonly held: string
      readonly creditLimit: string
      readonly available: string | null
      readonly keepsBodies: boolean
      readonly tier: string | null
      readonly allows: readonly string[] | null
      readonly denies: readonly string[] | null
      readonly frozen: boolean
      readonly frozenSince: string | null
      readonly created: string
      readonly version: number
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/accounts/{account}/budgets': {
    request: { readonly params: { readonly account: string } }
    answer: { readonly data: readonly Budget[] }
  }
  'PUT /api/web/accounts/{account}/budgets/{span}': {
    request: {
      readonly params: { readonly account: string; readonly span: 'total' | 'day' | 'month' }
      readonly body: { readonly cap: string }
    }
    answer: Budget
  }
  'DELETE /api/web/accounts/{account}/budgets/{span}': {
    request: { readonly params: { readonly account: string; readonly span: 'total' | 'day' | 'month' } }
    answer: undefined
  }
  'GET /api/web/keys/{key}/budgets': {
    request: { readonly params: { readonly key: string } }
    answer: { readonly data: readonly Budget[] }
  }
  'PUT /api/web/keys/{key}/budgets/{span}': {
    request: {
      readonly params: { readonly key: string; readonly span: 'total' | 'day' | 'month' }
      readonly body: { readonly cap: string }
    }
    answer: Budget
  }
  'DELETE /api/web/keys/{key}/budgets/{span}': {
    request: { readonly params: { readonly key: string; readonly span: 'total' | 'day' | 'month' } }
    answer: undefined
  }
  'GET /api/web/limits': {
    request: {
      readonly query?: {
        readonly resource?: 'requests' | 'tokens' | 'concurrency'
        readonly key?: string
        readonly account?: string
        readonly tier?: string
        readonly model?: string
        readonly sort?: 'id' | '-id'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Limit[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/limits': {
    request: {
      readonly body: {
        readonly resource: 'requests' | 'tokens' | 'concurrency'
        readonly span?: 'minute' | 'day' | null
        readonly amount: number
        readonly key?: string | null
        readonly account?: string | null
        readonly tier?: string | null
        readonly model?: string | null
        readonly per?: readonly ('key' | 'account' | 'model')[]
      }
    }
    answer: {
      readonly id: number
      readonly resource: 'requests' | 'tokens' | 'concurrency'
      readonly span: 'minute' | 'day' | null
      readonly amount: number
      readonly key: string | null
      readonly keyName: string | null
      readonly account: string | null
      readonly accountName: string | null
      readonly tier: string | null
      readonly model: string | null
      readonly per: readonly ('key' | 'account' | 'model')[]
      readonly version: number
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/limits/{limit}': {
    request: { readonly params: { readonly limit: number } }
    answer: Limit
  }
  'PATCH /api/web/limits/{limit}': {
    request: { readonly params: { readonly limit: number }; readonly body: { readonly amount: number } }
    answer: {
      readonly id: number
      readonly resource: 'requests' | 'tokens' | 'concurrency'
      readonly span: 'minute' | 'day' | null
      readonly amount: number
      readonly key: string | null
      readonly keyName: string | null
      readonly account: string | null
      readonly accountName: string | null
      readonly tier: string | null
      readonly model: string | null
      readonly per: readonly ('key' | 'account' | 'model')[]
      readonly version: number
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'DELETE /api/web/limits/{limit}': {
    request: { readonly params: { readonly limit: number } }
    answer: undefined
  }
  'GET /api/web/audit-log': {
    request: {
      readonly query?: {
        readonly actor?: string
        readonly action?: string
        readonly target?: string
        readonly account?: string
        readonly from?: string
        readonly before?: string
        readonly raw?: 'true' | 'false'
        readonly sort?: 'seq' | '-seq'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly AuditRow[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/audit-log/check': {
    request: { readonly query?: { readonly head?: string } }
    answer: {
      readonly rows: number
      readonly brokenAt: number | null
      readonly head: { readonly seq: number; readonly hash: string } | null
    }
  }
  'GET /api/web/accounts/{account}/statement': {
    request: {
      readonly params: { readonly account: string }
      readonly query?: {
        readonly kind?: 'charge' | 'shortfall' | 'top_up' | 'gift' | 'adjustment' | 'refund' | 'redemption' | 'opening'
        readonly from?: string
        readonly before?: string
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly StatementLine[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/accounts/{account}/statement/export': {
    request: {
      readonly params: { readonly account: string }
      readonly query?: {
        readonly kind?: 'charge' | 'shortfall' | 'top_up' | 'gift' | 'adjustment' | 'refund' | 'redemption' | 'opening'
        readonly from?: string
        readonly before?: string
        readonly format?: 'csv' | 'ndjson'
      }
    }
    answer: undefined
  }
  'GET /api/web/accounts/{account}/daily-hashes': {
    request: {
      readonly params: { readonly account: string }
      readonly query?: { readonly after?: string; readonly limit?: number }
    }
    answer: { readonly data: readonly DailyHash[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/accounts/{account}/top-ups': {
    request: {
      readonly params: { readonly account: string }
      readonly body: { readonly amount: string; readonly reference?: string }
    }
    answer: Posting
  }
  'POST /api/web/accounts/{account}/gifts': {
    request: {
      readonly params: { readonly account: string }
      readonly body: { readonly amount: string; readonly reference?: string }
    }
    answer: Posting
  }
  'POST /api/web/accounts/{account}/adjustments': {
    request: {
      readonly params: { readonly account: string }
      readonly body: { readonly amount: string; readonly reference?: string }
    }
    answer: Posting
  }
  'POST /api/web/accounts/{account}/refunds': {
    request: {
      readonly params: { readonly account: string }
      readonly body: { readonly call: string; readonly amount?: string; readonly reference?: string }
    }
    answer: Posting
  }
  'GET /api/web/ledger/trial-balance': {
    request: object
    answer: TrialBalance
  }
  'GET /api/web/ledger/check': {
    request: object
    answer: {
      readonly books: 'agree' | 'do not agree' | 'not looked at yet'
      readonly audited: string | null
      readonly findings: readonly {
        readonly check: string
        readonly account: string | null
        readonly finding: string
        readonly findingHint: Hint
      }[]
    }
  }
  'GET /api/web/codes': {
    request: {
      readonly query?: {
        readonly batch?: string
        readonly account?: string
        readonly state?: 'open' | 'redeemed' | 'voided' | 'expired'
        readonly sort?: 'made' | '-made'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Code[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/codes': {
    request: {
      readonly query?: { readonly format?: 'json' | 'csv' }
      readonly body: {
        readonly count: number
        readonly amount: string
        readonly batch?: string
        readonly expires?: string
      }
    }
    answer: {
      readonly batch: string
      readonly amount: string
      readonly expires: string | null
      readonly codes: readonly string[]
    }
  }
  'GET /api/web/codes/batches': {
    request: { readonly query?: { readonly after?: string; readonly limit?: number } }
    answer: { readonly data: readonly CodeBatch[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/codes/voids': {
    request: { readonly body: { readonly batch?: string; readonly code?: string } }
    answer: { readonly voided: number }
  }
  'POST /api/web/accounts/{account}/redemptions': {
    request: { readonly params: { readonly account: string }; readonly body: { readonly code: string } }
    answer: { readonly amount: string; readonly balance: string }
  }
  'GET /api/web/accounts/{account}/balance-alert': {
    request: { readonly params: { readonly account: string } }
    answer: BalanceAlert
  }
  'PUT /api/web/accounts/{account}/balance-alert': {
    request: { readonly params: { readonly account: string }; readonly body: { readonly threshold: string } }
    answer: BalanceAlert
  }
  'DELETE /api/web/accounts/{account}/balance-alert': {
    request: { readonly params: { readonly account: string } }
    answer: undefined
  }
  'GET /api/web/webhooks': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly sort?: 'created' | '-created'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Webhook[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/webhooks': {
    request: {
      readonly body: {
        readonly url: string
        readonly events: readonly (
          | 'balance.low'
          | 'balance.empty'
          | 'budget.low'
          | 'key.revoked'
          | 'account.frozen'
          | 'channel.down'
          | 'channel.up'
          | 'ledger.drift'
        )[]
        readonly disabled?: boolean
        readonly secret?: string
        readonly secretFrom?: string | null
      }
    }
    answer: {
      readonly id: string
      readonly account: string | null
      readonly accountName: string | null
      readonly url: string
      readonly events: readonly (
        | 'balance.low'
        | 'balance.empty'
        | 'budget.low'
        | 'key.revoked'
        | 'account.frozen'
        | 'channel.down'
        | 'channel.up'
        | 'ledger.drift'
      )[]
      readonly disabled: boolean
      readonly secretFrom: string | null
      readonly secretMark: string | null
      readonly waiting: number
      readonly dropped: number
      readonly author: string
      readonly created: string
      readonly version: number
      readonly managedBy: 'file' | null
      readonly secret: string
    }
  }
  'GET /api/web/webhooks/{webhook}': {
    request: { readonly params: { readonly webhook: string } }
    answer: Webhook
  }
  'PATCH /api/web/webhooks/{webhook}': {
    request: {
      readonly params: { readonly webhook: string }
      readonly body: {
        readonly url?: string
        readonly events?: readonly (
          | 'balance.low'
          | 'balance.empty'
          | 'budget.low'
          | 'key.revoked'
          | 'account.frozen'
          | 'channel.down'
          | 'channel.up'
          | 'ledger.drift'
        )[]
        readonly disabled?: boolean
        readonly secret?: string
        readonly secretFrom?: string | null
      }
    }
    answer: Webhook
  }
  'DELETE /api/web/webhooks/{webhook}': {
    request: { readonly params: { readonly webhook: string } }
    answer: undefined
  }
  'GET /api/web/webhooks/{webhook}/deliveries': {
    request: {
      readonly params: { readonly webhook: string }
      readonly query?: { readonly sort?: 'made' | '-made'; readonly after?: string; readonly limit?: number }
    }
    answer: { readonly data: readonly WebhookDelivery[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/webhooks/{webhook}/deliveries/{delivery}': {
    request: { readonly params: { readonly webhook: string; readonly delivery: string } }
    answer: WebhookDeliveryInFull
  }
  'POST /api/web/accounts/{account}/webhooks': {
    request: {
      readonly params: { readonly account: string }
      readonly body: {
        readonly url: string
        readonly events: readonly ('balance.low' | 'balance.empty' | 'budget.low' | 'key.revoked' | 'account.frozen')[]
        readonly disabled?: boolean
        readonly secret?: string
        readonly secretFrom?: string | null
      }
    }
    answer: {
      readonly id: string
      readonly account: string | null
      readonly accountName: string | null
      readonly url: string
      readonly events: readonly (
        | 'balance.low'
        | 'balance.empty'
        | 'budget.low'
        | 'key.revoked'
        | 'account.frozen'
        | 'channel.down'
        | 'channel.up'
        | 'ledger.drift'
      )[]
      readonly disabled: boolean
      readonly secretFrom: string | null
      readonly secretMark: string | null
      readonly waiting: number
      readonly dropped: number
      readonly author: string
      readonly created: string
      readonly version: number
      readonly managedBy: 'file' | null
      readonly secret: string
    }
  }
  'POST /api/web/webhooks/{webhook}/secret': {
    request: { readonly params: { readonly webhook: string } }
    answer: {
      readonly id: string
      readonly account: string | null
      readonly accountName: string | null
      readonly url: string
      readonly events: readonly (
        | 'balance.low'
        | 'balance.empty'
        | 'budget.low'
        | 'key.revoked'
        | 'account.frozen'
        | 'channel.down'
        | 'channel.up'
        | 'ledger.drift'
      )[]
      readonly disabled: boolean
      readonly secretFrom: string | null
      readonly secretMark: string | null
      readonly waiting: number
      readonly dropped: number
      readonly author: string
      readonly created: string
      readonly version: number
      readonly managedBy: 'file' | null
      readonly secret: string
    }
  }
  'POST /api/web/webhooks/{webhook}/test': {
    request: { readonly params: { readonly webhook: string } }
    answer: {
      readonly id: string
      readonly delivered: boolean
      readonly status: number | null
      readonly ms: number
      readonly error: string | null
      readonly errorHint: Hint | null
    }
  }
  'POST /api/web/webhooks/{webhook}/deliveries/{delivery}/send-again': {
    request: { readonly params: { readonly webhook: string; readonly delivery: string } }
    answer: WebhookDeliveryInFull
  }
  'POST /api/web/prices/backtest': {
    request: {
      readonly body: {
        readonly from: string
        readonly before?: string
        readonly model?: string
        readonly price?: WrittenPrice
        readonly tier?: string
        readonly pricePerMille?: number
        readonly account?: string
        readonly key?: string
      }
    }
    answer: Backtest
  }
  'POST /api/web/prices/check': {
    request: object
    answer: {
      readonly compared: boolean
      readonly prices: number
      readonly disagreements: readonly {
        readonly model: string
        readonly when: string
        readonly rate: string
        readonly ours: string | null
        readonly theirs: readonly { readonly source: string; readonly rate: string }[]
        readonly cheaper: boolean
        readonly reason: string | null
      }[]
      readonly unlisted: readonly string[]
      readonly without: readonly string[]
    }
  }
  'GET /api/web/prices': {
    request: {
      readonly query?: {
        readonly model?: string
        readonly origin?: 'shipped' | 'operator'
        readonly sort?: 'model' | '-model'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly ModelPrice[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/prices/history/{model}': {
    request: {
      readonly params: { readonly model: string }
      readonly query?: { readonly sort?: 'version' | '-version'; readonly after?: string; readonly limit?: number }
    }
    answer: { readonly data: readonly PriceVersion[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/prices/{model}': {
    request: { readonly params: { readonly model: string } }
    answer: ModelPrice
  }
  'PUT /api/web/prices/{model}': {
    request: { readonly params: { readonly model: string }; readonly body: { readonly price: WrittenPrice } }
    answer: {
      readonly model: string
      readonly origin: 'shipped' | 'operator'
      readonly version: number
      readonly price: WrittenPrice
      readonly made: string
      readonly inUse: boolean
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'DELETE /api/web/prices/{model}': {
    request: { readonly params: { readonly model: string } }
    answer: undefined
  }
  'GET /api/web/records': {
    request: {
      readonly query?: {
        readonly from?: string
        readonly before?: string
        readonly id?: string
        readonly account?: string
        readonly key?: string
        readonly model?: string
        readonly provider?: string
        readonly channel?: string
        readonly outcome?: string
        readonly error?: string
        readonly status?: number
        readonly costMin?: string
        readonly costMax?: string
        readonly endUser?: string
        readonly streamed?: 'true' | 'false'
        readonly dialect?: string
        readonly requestedModel?: string
        readonly tag?: string
        readonly lossy?: 'true' | 'false'
        readonly attemptsMin?: number
        readonly firstContentMsMin?: number
        readonly durationMsMin?: number
        readonly conversation?: string
        readonly sort?: 'time' | '-time'
        readonly settledAfter?: string
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: {
      readonly data: readonly CallRecord[]
      readonly next: string | null
      readonly limit: number
      readonly endedEarly: boolean
      readonly missed?: boolean
    }
  }
  'GET /api/web/records/export': {
    request: {
      readonly query?: {
        readonly from?: string
        readonly before?: string
        readonly id?: string
        readonly account?: string
        readonly key?: string
        readonly model?: string
        readonly provider?: string
        readonly channel?: string
        readonly outcome?: string
        readonly error?: string
        readonly status?: number
        readonly costMin?: string
        readonly costMax?: string
        readonly endUser?: string
        readonly streamed?: 'true' | 'false'
        readonly dialect?: string
        readonly requestedModel?: string
        readonly tag?: string
        readonly lossy?: 'true' | 'false'
        readonly attemptsMin?: number
        readonly firstContentMsMin?: number
        readonly durationMsMin?: number
        readonly conversation?: string
        readonly sort?: 'time' | '-time'
        readonly format?: 'csv' | 'ndjson'
      }
    }
    answer: undefined
  }
  'GET /api/web/records/{record}': {
    request: { readonly params: { readonly record: string } }
    answer: RecordInFull
  }
  'GET /api/web/records/{record}/bodies': {
    request: { readonly params: { readonly record: string } }
    answer: {
      readonly request: { readonly text: string; readonly truncated: boolean }
      readonly answer: { readonly text: string; readonly truncated: boolean }
    }
  }
  'GET /api/web/records/deletions': {
    request: { readonly query?: { readonly sort?: 'id' | '-id'; readonly after?: string; readonly limit?: number } }
    answer: { readonly data: readonly RecordDeletion[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/records/deletions': {
    request: {
      readonly body: {
        readonly account?: string
        readonly key?: string
        readonly endUser?: string
        readonly from?: string
        readonly before?: string
      }
    }
    answer: RecordDeletion
  }
  'GET /api/web/records/deletions/{deletion}': {
    request: { readonly params: { readonly deletion: number } }
    answer: RecordDeletion
  }
  'POST /api/web/downloads': {
    request: {
      readonly body:
        | {
            readonly of: 'records'
            readonly query: {
              readonly from?: string
              readonly before?: string
              readonly id?: string
              readonly account?: string
              readonly key?: string
              readonly model?: string
              readonly provider?: string
              readonly channel?: string
              readonly outcome?: string
              readonly error?: string
              readonly status?: number
              readonly costMin?: string
              readonly costMax?: string
              readonly endUser?: string
              readonly streamed?: 'true' | 'false'
              readonly dialect?: string
              readonly requestedModel?: string
              readonly tag?: string
              readonly lossy?: 'true' | 'false'
              readonly attemptsMin?: number
              readonly firstContentMsMin?: number
              readonly durationMsMin?: number
              readonly conversation?: string
              readonly sort?: 'time' | '-time'
              readonly format?: 'csv' | 'ndjson'
            }
          }
        | {
            readonly of: 'statement'
            readonly query: {
              readonly kind?:
                | 'charge'
                | 'shortfall'
                | 'top_up'
                | 'gift'
                | 'adjustment'
                | 'refund'
                | 'redemption'
                | 'opening'
              readonly from?: string
              readonly before?: string
              readonly format?: 'csv' | 'ndjson'
              readonly account: string
            }
          }
    }
    answer: Download
  }
  'GET /api/auth/downloads/{ticket}': {
    request: { readonly params: { readonly ticket: string } }
    answer: undefined
  }
  'GET /api/web/live': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly key?: string
        readonly model?: string
        readonly provider?: string
        readonly channel?: string
        readonly outcome?: string
        readonly error?: string
        readonly status?: number
        readonly costMin?: string
        readonly costMax?: string
        readonly endUser?: string
        readonly streamed?: 'true' | 'false'
        readonly dialect?: string
        readonly requestedModel?: string
        readonly tag?: string
        readonly lossy?: 'true' | 'false'
        readonly attemptsMin?: number
        readonly firstContentMsMin?: number
        readonly durationMsMin?: number
        readonly after?: string
      }
    }
    answer: undefined
  }
  'GET /api/web/statistics/summary': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly key?: string
        readonly model?: string
        readonly channel?: string
        readonly from?: string
        readonly before?: string
      }
    }
    answer: Figures
  }
  'GET /api/web/statistics/series': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly key?: string
        readonly model?: string
        readonly channel?: string
        readonly from?: string
        readonly before?: string
        readonly step?: 'minute' | 'hour' | 'day' | 'month'
        readonly zone?: string
        readonly split?: 'account' | 'key' | 'model' | 'channel' | 'outcome'
        readonly by?: 'calls' | 'errors' | 'tokens' | 'cost'
        readonly top?: number
      }
    }
    answer: {
      readonly from: string
      readonly before: string
      readonly summedUp: number
      readonly step: 'minute' | 'hour' | 'day' | 'month'
      readonly data: readonly SeriesPoint[]
      readonly groups: readonly SeriesGroup[] | null
    }
  }
  'GET /api/web/statistics/top': {
    request: {
      readonly query: {
        readonly account?: string
        readonly key?: string
        readonly model?: string
        readonly channel?: string
        readonly from?: string
        readonly before?: string
        readonly of: 'account' | 'key' | 'model' | 'channel'
        readonly by?: 'calls' | 'errors' | 'tokens' | 'cost'
        readonly limit?: number
      }
    }
    answer: {
      readonly from: string
      readonly before: string
      readonly summedUp: number
      readonly data: readonly TopRow[]
    }
  }
  'GET /api/web/statistics/end-users': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly from?: string
        readonly before?: string
        readonly by?: 'calls' | 'errors' | 'tokens' | 'cost'
        readonly limit?: number
      }
    }
    answer: {
      readonly from: string
      readonly before: string
      readonly summedUp: number
      readonly data: readonly EndUser[]
    }
  }
  'GET /api/web/statistics/errors': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly key?: string
        readonly model?: string
        readonly channel?: string
        readonly from?: string
        readonly before?: string
      }
    }
    answer: {
      readonly from: string
      readonly before: string
      readonly summedUp: number
      readonly data: readonly ErrorCount[]
    }
  }
  'GET /api/web/statistics/overview': {
    request: {
      readonly query?: {
        readonly account?: string
        readonly from?: string
        readonly before?: string
        readonly step?: 'minute' | 'hour' | 'day' | 'month'
        readonly zone?: string
      }
    }
    answer: Overview
  }
  'GET /api/web/search': {
    request: { readonly query: { readonly text: string } }
    answer: { readonly data: readonly SearchHit[] }
  }
  'GET /api/web/providers': {
    request: {
      readonly query?: {
        readonly from?: 'shipped' | 'own'
        readonly text?: string
        readonly sort?: 'id' | '-id'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: {
      readonly data: readonly {
        readonly id: string
        readonly name: string
        readonly from: 'shipped' | 'own' | 'own over shipped'
        readonly baseUrl: string
        readonly speaks: readonly string[]
        readonly tags: readonly string[]
        readonly models: number
        readonly channels: number
        readonly free: boolean
        readonly keyless: boolean
        readonly problem: string | null
        readonly problemHint: Hint | null
        readonly version: number
        readonly managedBy: 'file' | null
      }[]
      readonly next: string | null
      readonly limit: number
    }
  }
  'POST /api/web/providers': {
    request: { readonly body: { readonly definition: ProviderDefinition } }
    answer: {
      readonly id: string
      readonly name: string
      readonly from: 'shipped' | 'own' | 'own over shipped'
      readonly baseUrl: string
      readonly speaks: readonly string[]
      readonly tags: readonly string[]
      readonly models: number
      readonly channels: number
      readonly free: boolean
      readonly keyless: boolean
      readonly problem: string | null
      readonly problemHint: Hint | null
      readonly version: number
      readonly managedBy: 'file' | null
      readonly definition: ProviderDefinition
      readonly cleared: readonly string[]
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/providers/{provider}': {
    request: { readonly params: { readonly provider: string } }
    answer: Provider
  }
  'PATCH /api/web/providers/{provider}': {
    request: {
      readonly params: { readonly provider: string }
      readonly body: { readonly definition: ProviderDefinitionChange }
    }
    answer: {
      readonly id: string
      readonly name: string
      readonly from: 'shipped' | 'own' | 'own over shipped'
      readonly baseUrl: string
      readonly speaks: readonly string[]
      readonly tags: readonly string[]
      readonly models: number
      readonly channels: number
      readonly free: boolean
      readonly keyless: boolean
      readonly problem: string | null
      readonly problemHint: Hint | null
      readonly version: number
      readonly managedBy: 'file' | null
      readonly definition: ProviderDefinition
      readonly cleared: readonly string[]
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'DELETE /api/web/providers/{provider}': {
    request: { readonly params: { readonly provider: string } }
    answer: {
      readonly cleared: readonly string[]
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'POST /api/web/providers/{provider}/models': {
    request: {
      readonly params: { readonly provider: string }
      readonly body: { readonly models: readonly ProviderModel[] }
    }
    answer: {
      readonly id: string
      readonly name: string
      readonly from: 'shipped' | 'own' | 'own over shipped'
      readonly baseUrl: string
      readonly speaks: readonly string[]
      readonly tags: readonly string[]
      readonly models: number
      readonly channels: number
      readonly free: boolean
      readonly keyless: boolean
      readonly problem: string | null
      readonly problemHint: Hint | null
      readonly version: number
      readonly managedBy: 'file' | null
      readonly definition: ProviderDefinition
      readonly cleared: readonly string[]
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/channels': {
    request: {
      readonly query?: {
        readonly provider?: string
        readonly from?: 'environment' | 'stored'
        readonly state?: 'enabled' | 'disabled' | 'unusable' | 'gone'
        readonly tag?: string
        readonly health?: string
        readonly text?: string
        readonly sort?: 'id' | '-id'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Channel[]; readonly next: string | null; readonly limit: number }
  }
  'POST /api/web/channels': {
    request: {
      readonly body: {
        readonly provider: string
        readonly name?: string
        readonly baseUrl?: string | null
        readonly credentials?: readonly string[]
        readonly credentialFrom?: string | null
        readonly disabled?: boolean
        readonly weight?: number
        readonly priority?: number
        readonly requestsPerMinute?: number | null
        readonly tokensPerMinute?: number | null
        readonly concurrency?: number | null
        readonly tags?: readonly string[]
        readonly foreignIds?: boolean
        readonly headers?: Readonly<Record<string, string>>
        readonly parameters?: Readonly<
          Record<
            string,
            {
              readonly set?: Readonly<Record<string, JsonValue>>
              readonly default?: Readonly<Record<string, JsonValue>>
              readonly remove?: readonly string[]
            }
          >
        >
        readonly times?: {
          readonly connectSeconds?: number
          readonly tlsSeconds?: number
          readonly firstContentSeconds?: number
          readonly betweenChunksSeconds?: number
          readonly totalSeconds?: number
        }
      }
    }
    answer: {
      readonly data: readonly Channel[]
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/channels/{channel}': {
    request: { readonly params: { readonly channel: string } }
    answer: Channel
  }
  'PATCH /api/web/channels/{channel}': {
    request: {
      readonly params: { readonly channel: string }
      readonly body: {
        readonly disabled?: boolean
        readonly weight?: number
        readonly priority?: number
        readonly requestsPerMinute?: number | null
        readonly tokensPerMinute?: number | null
        readonly concurrency?: number | null
        readonly tags?: readonly string[]
        readonly foreignIds?: boolean
        readonly headers?: Readonly<Record<string, string>>
        readonly parameters?: Readonly<
          Record<
            string,
            {
              readonly set?: Readonly<Record<string, JsonValue>>
              readonly default?: Readonly<Record<string, JsonValue>>
              readonly remove?: readonly string[]
            }
          >
        >
        readonly times?: {
          readonly connectSeconds?: number
          readonly tlsSeconds?: number
          readonly firstContentSeconds?: number
          readonly betweenChunksSeconds?: number
          readonly totalSeconds?: number
        }
        readonly name?: string
        readonly baseUrl?: string | null
        readonly credential?: string
        readonly credentialFrom?: string | null
        readonly proxy?: string | null
      }
    }
    answer: {
      readonly id: string
      readonly provider: string
      readonly from: 'environment' | 'stored'
      readonly name: string | null
      readonly baseUrl: string | null
      readonly ownBaseUrl: string | null
      readonly state: 'enabled' | 'disabled' | 'unusable' | 'gone'
      readonly problem: string | null
      readonly problemHint: Hint | null
      readonly disabled: boolean
      readonly credential: { readonly fingerprint: string; readonly origin: string } | null
      readonly credentialFrom: string | null
      readonly weight: number
      readonly priority: number
      readonly requestsPerMinute: number | null
      readonly tokensPerMinute: number | null
      readonly concurrency: number | null
      readonly proxy: boolean
      readonly tags: readonly string[]
      readonly ownTags: readonly string[]
      readonly foreignIds: boolean
      readonly headers: Readonly<Record<string, string>>
      readonly parameters: Readonly<
        Record<
          string,
          {
            readonly set?: Readonly<Record<string, JsonValue>>
            readonly default?: Readonly<Record<string, JsonValue>>
            readonly remove?: readonly string[]
          }
        >
      >
      readonly times: {
        readonly connectSeconds?: number
        readonly tlsSeconds?: number
        readonly firstContentSeconds?: number
        readonly betweenChunksSeconds?: number
        readonly totalSeconds?: number
      }
      readonly health: {
        readonly state: string
        readonly availableInMs: number
        readonly activeCalls: number
        readonly limit: number | null
        readonly firstMs: number | null
        readonly lastFailure: { readonly verdict: string; readonly agoMs: number } | null
        readonly lost: number
      } | null
      readonly version: number
      readonly author: string | null
      readonly created: string | null
      readonly changed: string | null
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'DELETE /api/web/channels/{channel}': {
    request: { readonly params: { readonly channel: string } }
    answer: undefined
  }
  'POST /api/web/channels/{channel}/move': {
    request: { readonly params: { readonly channel: string }; readonly body: { readonly to: string } }
    answer: {
      readonly id: string
      readonly provider: string
      readonly from: 'environment' | 'stored'
      readonly name: string | null
      readonly baseUrl: string | null
      readonly ownBaseUrl: string | null
      readonly state: 'enabled' | 'disabled' | 'unusable' | 'gone'
      readonly problem: string | null
      readonly problemHint: Hint | null
      readonly disabled: boolean
      readonly credential: { readonly fingerprint: string; readonly origin: string } | null
      readonly credentialFrom: string | null
      readonly weight: number
      readonly priority: number
      readonly requestsPerMinute: number | null
      readonly tokensPerMinute: number | null
      readonly concurrency: number | null
      readonly proxy: boolean
      readonly tags: readonly string[]
      readonly ownTags: readonly string[]
      readonly foreignIds: boolean
      readonly headers: Readonly<Record<string, string>>
      readonly parameters: Readonly<
        Record<
          string,
          {
            readonly set?: Readonly<Record<string, JsonValue>>
            readonly default?: Readonly<Record<string, JsonValue>>
            readonly remove?: readonly string[]
          }
        >
      >
      readonly times: {
        readonly connectSeconds?: number
        readonly tlsSeconds?: number
        readonly firstContentSeconds?: number
        readonly betweenChunksSeconds?: number
        readonly totalSeconds?: number
      }
      readonly health: {
        readonly state: string
        readonly availableInMs: number
        readonly activeCalls: number
        readonly limit: number | null
        readonly firstMs: number | null
        readonly lastFailure: { readonly verdict: string; readonly agoMs: number } | null
        readonly lost: number
      } | null
      readonly version: number
      readonly author: string | null
      readonly created: string | null
      readonly changed: string | null
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'POST /api/web/channels/{channel}/reset': {
    request: { readonly params: { readonly channel: string } }
    answer: undefined
  }
  'POST /api/web/channels/{channel}/enable': {
    request: { readonly params: { readonly channel: string } }
    answer: Channel
  }
  'POST /api/web/channels/{channel}/disable': {
    request: { readonly params: { readonly channel: string } }
    answer: Channel
  }
  'POST /api/web/channels/{channel}/test': {
    request: { readonly params: { readonly channel: string }; readonly body: { readonly model?: string } }
    answer: Trial
  }
  'POST /api/web/channels/{channel}/fetch-models': {
    request: { readonly params: { readonly channel: string } }
    answer: {
      readonly fresh: readonly string[]
      readonly known: readonly string[]
      readonly gone: readonly string[]
      readonly priced: readonly string[]
    }
  }
  'POST /api/web/channels/{channel}/reset-health': {
    request: { readonly params: { readonly channel: string } }
    answer: undefined
  }
  'POST /api/web/channels/bulk': {
    request: {
      readonly body: {
        readonly channels?: readonly { readonly id: string; readonly version?: number }[]
        readonly filter?: {
          readonly provider?: string
          readonly from?: 'environment' | 'stored'
          readonly state?: 'enabled' | 'disabled' | 'unusable' | 'gone'
          readonly tag?: string
          readonly health?: string
          readonly text?: string
        }
        readonly change: {
          readonly disabled?: boolean
          readonly weight?: number
          readonly priority?: number
          readonly requestsPerMinute?: number | null
          readonly tokensPerMinute?: number | null
          readonly concurrency?: number | null
          readonly tags?: readonly string[]
          readonly foreignIds?: boolean
          readonly headers?: Readonly<Record<string, string>>
          readonly parameters?: Readonly<
            Record<
              string,
              {
                readonly set?: Readonly<Record<string, JsonValue>>
                readonly default?: Readonly<Record<string, JsonValue>>
                readonly remove?: readonly string[]
              }
            >
          >
          readonly times?: {
            readonly connectSeconds?: number
            readonly tlsSeconds?: number
            readonly firstContentSeconds?: number
            readonly betweenChunksSeconds?: number
            readonly totalSeconds?: number
          }
        }
      }
    }
    answer: {
      readonly data: readonly Channel[]
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'GET /api/web/models': {
    request: {
      readonly query?: {
        readonly provider?: string
        readonly available?: string
        readonly text?: string
        readonly sort?: 'id' | '-id'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly Model[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/models/{model}': {
    request: { readonly params: { readonly model: string } }
    answer: Model
  }
  'GET /api/web/routes': {
    request: {
      readonly query?: {
        readonly name?: string
        readonly policy?: 'balanced' | 'weighted' | 'least_busy' | 'fastest' | 'cheapest'
        readonly sort?: 'name' | '-name' | 'changed' | '-changed'
        readonly after?: string
        readonly limit?: number
      }
    }
    answer: { readonly data: readonly ModelRoute[]; readonly next: string | null; readonly limit: number }
  }
  'GET /api/web/routes/{name}': {
    request: { readonly params: { readonly name: string } }
    answer: ModelRoute
  }
  'PUT /api/web/routes/{name}': {
    request: {
      readonly params: { readonly name: string }
      readonly body: {
        readonly policy?: 'balanced' | 'weighted' | 'least_busy' | 'fastest' | 'cheapest'
        readonly members: readonly { readonly model: string; readonly priority?: number; readonly weight?: number }[]
      }
    }
    answer: {
      readonly name: string
      readonly policy: string
      readonly members: readonly RouteMember[]
      readonly author: string
      readonly changed: string
      readonly version: number
      readonly managedBy: 'file' | null
      readonly warnings: readonly string[]
      readonly warningHints: readonly Hint[]
    }
  }
  'DELETE /api/web/routes/{name}': {
    request: { readonly params: { readonly name: string } }
    answer: { readonly warnings: readonly string[]; readonly warningHints: readonly Hint[] }
  }
}

/** The roles that may use each operation; null for everybody who is signed in. */
export const operationRoles = {
  'GET /api/public/models': null,
  'GET /api/public/providers': null,
  'GET /api/public/pricing': null,
  'GET /api/public/settings': null,
  'GET /api/auth/setup': { 'site': null, 'account': null },
  'POST /api/auth/setup': { 'site': null, 'account': null },
  'POST /api/auth/sign-in': { 'site': null, 'account': null },
  'POST /api/auth/refresh': { 'site': null, 'account': null },
  'POST /api/auth/session': { 'site': null, 'account': null },
  'POST /api/auth/sign-out': { 'site': null, 'account': null },
  'POST /api/auth/sign-out-everywhere': { 'site': null, 'account': null },
  'POST /api/auth/invitation/look': { 'site': null, 'account': null },
  'POST /api/auth/invitation': { 'site': null, 'account': null },
  'POST /api/auth/password': { 'site': null, 'account': null },
  'POST /api/auth/registration': { 'site': null, 'account': null },
  'GET /api/web/me': { 'site': 'member', 'account': null },
  'PATCH /api/web/me': { 'site': 'member', 'account': null },
  'POST /api/web/me/password': { 'site': 'member', 'account': null },
  'POST /api/web/me/second-factor': { 'site': 'member', 'account': null },
  'POST /api/web/me/second-factor/confirm': { 'site': 'member', 'account': null },
  'POST /api/web/me/recovery-codes': { 'site': 'member', 'account': null },
  'POST /api/web/me/second-factor/remove': { 'site': 'member', 'account': null },
  'GET /api/web/sessions': { 'site': 'member', 'account': null },
  'DELETE /api/web/sessions': { 'site': 'member', 'account': null },
  'DELETE /api/web/sessions/{session}': { 'site': 'member', 'account': null },
  'GET /api/web/users': { 'site': 'support', 'account': null },
  'GET /api/web/users/{user}': { 'site': 'support', 'account': null },
  'PATCH /api/web/users/{user}': { 'site': 'admin', 'account': null },
  'DELETE /api/web/users/{user}': { 'site': 'admin', 'account': null },
  'POST /api/web/users/{user}/password-reset': { 'site': 'admin', 'account': null },
  'GET /api/web/users/{user}/accounts': { 'site': 'support', 'account': null },
  'GET /api/web/users/{user}/sessions': { 'site': 'support', 'account': null },
  'DELETE /api/web/users/{user}/sessions': { 'site': 'admin', 'account': null },
  'DELETE /api/web/users/{user}/sessions/{session}': { 'site': 'admin', 'account': null },
  'GET /api/web/accounts/{account}/members': { 'site': 'support', 'account': 'viewer' },
  'POST /api/web/accounts/{account}/members': { 'site': 'admin', 'account': null },
  'PATCH /api/web/accounts/{account}/members/{user}': { 'site': 'admin', 'account': 'manager' },
  'DELETE /api/web/accounts/{account}/members/{user}': { 'site': 'admin', 'account': 'viewer' },
  'GET /api/web/invitations': { 'site': 'support', 'account': 'manager' },
  'POST /api/web/invitations': { 'site': 'member', 'account': null },
  'POST /api/web/invitations/accept': { 'site': 'member', 'account': null },
  'DELETE /api/web/invitations/{invitation}': { 'site': 'member', 'account': null },
  'GET /api/web/service-tokens': { 'site': 'support', 'account': 'manager' },
  'POST /api/web/service-tokens': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/service-tokens/{token}': { 'site': 'support', 'account': 'manager' },
  'PATCH /api/web/service-tokens/{token}': { 'site': 'admin', 'account': 'manager' },
  'DELETE /api/web/service-tokens/{token}': { 'site': 'admin', 'account': 'manager' },
  'POST /api/web/service-tokens/{token}/rotate': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/settings': { 'site': 'support', 'account': null },
  'PATCH /api/web/settings': {
    'site': 'admin',
    'account': null,
    'fields': { 'registration': 'owner', 'allowedDomains': 'owner', 'startingCredit': 'owner', 'invitations': 'owner' },
  },
  'GET /api/web/gateway': { 'site': 'support', 'account': null },
  'GET /api/web/tiers': { 'site': 'member', 'account': null },
  'POST /api/web/tiers': { 'site': 'admin', 'account': null },
  'GET /api/web/tiers/{tier}': { 'site': 'member', 'account': null },
  'PATCH /api/web/tiers/{tier}': { 'site': 'admin', 'account': null },
  'DELETE /api/web/tiers/{tier}': { 'site': 'admin', 'account': null },
  'GET /api/web/keys': { 'site': 'support', 'account': 'viewer' },
  'POST /api/web/keys': {
    'site': 'admin',
    'account': 'developer',
    'fields': {
      'tier': 'admin',
      'qpm': 'admin',
      'explains': 'admin',
      'requires': 'admin',
      'credit': 'admin',
      'id': 'admin',
      'madeByMember': 'admin',
    },
  },
  'GET /api/web/keys/{key}': { 'site': 'support', 'account': 'viewer' },
  'PATCH /api/web/keys/{key}': {
    'site': 'admin',
    'account': 'developer',
    'fields': { 'tier': 'admin', 'qpm': 'admin', 'explains': 'admin', 'requires': 'admin' },
  },
  'DELETE /api/web/keys/{key}': { 'site': 'admin', 'account': 'developer' },
  'POST /api/web/keys/find': { 'site': 'admin', 'account': 'viewer' },
  'POST /api/web/keys/{key}/rotate': { 'site': 'admin', 'account': 'developer' },
  'POST /api/web/keys/bulk': { 'site': 'admin', 'account': 'developer' },
  'POST /api/web/keys/{key}/explain': { 'site': 'support', 'account': 'developer' },
  'GET /api/web/keys/{key}/report': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/keys/{key}/models': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/accounts/{account}/models': { 'site': 'support', 'account': 'viewer' },
  'POST /api/web/accounts/{account}/playground-key': { 'site': 'admin', 'account': 'developer' },
  'GET /api/web/accounts': { 'site': 'support', 'account': 'viewer' },
  'POST /api/web/accounts': { 'site': 'admin', 'account': null },
  'GET /api/web/accounts/{account}': { 'site': 'support', 'account': 'viewer' },
  'PATCH /api/web/accounts/{account}': {
    'site': 'admin',
    'account': 'manager',
    'fields': { 'kind': 'admin', 'creditLimit': 'admin', 'frozen': 'admin', 'tier': 'admin' },
  },
  'GET /api/web/accounts/{account}/budgets': { 'site': 'support', 'account': 'viewer' },
  'PUT /api/web/accounts/{account}/budgets/{span}': { 'site': 'admin', 'account': 'manager' },
  'DELETE /api/web/accounts/{account}/budgets/{span}': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/keys/{key}/budgets': { 'site': 'support', 'account': 'viewer' },
  'PUT /api/web/keys/{key}/budgets/{span}': { 'site': 'admin', 'account': 'manager' },
  'DELETE /api/web/keys/{key}/budgets/{span}': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/limits': { 'site': 'support', 'account': null },
  'POST /api/web/limits': { 'site': 'admin', 'account': null },
  'GET /api/web/limits/{limit}': { 'site': 'support', 'account': null },
  'PATCH /api/web/limits/{limit}': { 'site': 'admin', 'account': null },
  'DELETE /api/web/limits/{limit}': { 'site': 'admin', 'account': null },
  'GET /api/web/audit-log': { 'site': 'support', 'account': 'manager' },
  'GET /api/web/audit-log/check': { 'site': 'support', 'account': null },
  'GET /api/web/accounts/{account}/statement': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/accounts/{account}/statement/export': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/accounts/{account}/daily-hashes': { 'site': 'support', 'account': 'viewer' },
  'POST /api/web/accounts/{account}/top-ups': { 'site': 'admin', 'account': null },
  'POST /api/web/accounts/{account}/gifts': { 'site': 'admin', 'account': null },
  'POST /api/web/accounts/{account}/adjustments': { 'site': 'admin', 'account': null },
  'POST /api/web/accounts/{account}/refunds': { 'site': 'admin', 'account': null },
  'GET /api/web/ledger/trial-balance': { 'site': 'support', 'account': null },
  'GET /api/web/ledger/check': { 'site': 'support', 'account': null },
  'GET /api/web/codes': { 'site': 'support', 'account': null },
  'POST /api/web/codes': { 'site': 'admin', 'account': null },
  'GET /api/web/codes/batches': { 'site': 'support', 'account': null },
  'POST /api/web/codes/voids': { 'site': 'admin', 'account': null },
  'POST /api/web/accounts/{account}/redemptions': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/accounts/{account}/balance-alert': { 'site': 'support', 'account': 'viewer' },
  'PUT /api/web/accounts/{account}/balance-alert': { 'site': 'admin', 'account': 'manager' },
  'DELETE /api/web/accounts/{account}/balance-alert': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/webhooks': { 'site': 'support', 'account': 'manager' },
  'POST /api/web/webhooks': {
    'site': 'admin',
    'account': null,
    'fields': { 'secret': 'admin', 'secretFrom': 'operator' },
  },
  'GET /api/web/webhooks/{webhook}': { 'site': 'support', 'account': 'manager' },
  'PATCH /api/web/webhooks/{webhook}': {
    'site': 'admin',
    'account': 'manager',
    'fields': { 'secret': 'admin', 'secretFrom': 'operator' },
  },
  'DELETE /api/web/webhooks/{webhook}': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/webhooks/{webhook}/deliveries': { 'site': 'support', 'account': 'manager' },
  'GET /api/web/webhooks/{webhook}/deliveries/{delivery}': { 'site': 'support', 'account': 'manager' },
  'POST /api/web/accounts/{account}/webhooks': {
    'site': 'admin',
    'account': 'manager',
    'fields': { 'secret': 'admin', 'secretFrom': 'operator' },
  },
  'POST /api/web/webhooks/{webhook}/secret': { 'site': 'admin', 'account': 'manager' },
  'POST /api/web/webhooks/{webhook}/test': { 'site': 'admin', 'account': 'manager' },
  'POST /api/web/webhooks/{webhook}/deliveries/{delivery}/send-again': { 'site': 'admin', 'account': 'manager' },
  'POST /api/web/prices/backtest': { 'site': 'support', 'account': null },
  'POST /api/web/prices/check': { 'site': 'support', 'account': null },
  'GET /api/web/prices': { 'site': 'member', 'account': null },
  'GET /api/web/prices/history/{model}': { 'site': 'support', 'account': null },
  'GET /api/web/prices/{model}': { 'site': 'member', 'account': null },
  'PUT /api/web/prices/{model}': { 'site': 'admin', 'account': null },
  'DELETE /api/web/prices/{model}': { 'site': 'admin', 'account': null },
  'GET /api/web/records': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/records/export': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/records/{record}': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/records/{record}/bodies': { 'site': 'support', 'account': 'manager' },
  'GET /api/web/records/deletions': { 'site': 'support', 'account': 'manager' },
  'POST /api/web/records/deletions': { 'site': 'admin', 'account': 'manager' },
  'GET /api/web/records/deletions/{deletion}': { 'site': 'support', 'account': 'manager' },
  'POST /api/web/downloads': { 'site': 'member', 'account': null },
  'GET /api/auth/downloads/{ticket}': { 'site': null, 'account': null },
  'GET /api/web/live': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/statistics/summary': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/statistics/series': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/statistics/top': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/statistics/end-users': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/statistics/errors': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/statistics/overview': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/search': { 'site': 'support', 'account': 'viewer' },
  'GET /api/web/providers': { 'site': 'support', 'account': null },
  'POST /api/web/providers': { 'site': 'admin', 'account': null },
  'GET /api/web/providers/{provider}': { 'site': 'support', 'account': null },
  'PATCH /api/web/providers/{provider}': { 'site': 'admin', 'account': null },
  'DELETE /api/web/providers/{provider}': { 'site': 'admin', 'account': null },
  'POST /api/web/providers/{provider}/models': { 'site': 'admin', 'account': null },
  'GET /api/web/channels': { 'site': 'support', 'account': null },
  'POST /api/web/channels': { 'site': 'admin', 'account': null, 'fields': { 'credentialFrom': 'operator' } },
  'GET /api/web/channels/{channel}': { 'site': 'support', 'account': null },
  'PATCH /api/web/channels/{channel}': {
    'site': 'admin',
    'account': null,
    'fields': { 'proxy': 'operator', 'credentialFrom': 'operator' },
  },
  'DELETE /api/web/channels/{channel}': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/{channel}/move': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/{channel}/reset': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/{channel}/enable': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/{channel}/disable': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/{channel}/test': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/{channel}/fetch-models': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/{channel}/reset-health': { 'site': 'admin', 'account': null },
  'POST /api/web/channels/bulk': { 'site': 'admin', 'account': null },
  'GET /api/web/models': { 'site': 'support', 'account': null },
  'GET /api/web/models/{model}': { 'site': 'support', 'account': null },
  'GET /api/web/routes': { 'site': 'support', 'account': null },
  'GET /api/web/routes/{name}': { 'site': 'support', 'account': null },
  'PUT /api/web/routes/{name}': { 'site': 'admin', 'account': null },
  'DELETE /api/web/routes/{name}': { 'site': 'admin', 'account': null },
} as const
