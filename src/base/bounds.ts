// Limits that are built into the gateway and that several files or the documents need. A name ends in the unit and in Max
// or Min.

import { assert } from './assert.ts'

export const bounds = {
  /** Requests that wait while the gateway starts, and how long each may wait. */
  startWaitersMax: 1_024,
  startWaitMsMax: 10_000,
  /** A request body, after decompression. */
  bodyBytesMax: 32 * 1024 * 1024,
  bodyMsMax: 60_000,
  /** A body up to this size is read in one piece, and its JSON is parsed on the thread that serves calls. */
  smallBodyBytesMax: 64 * 1024,
  /** A larger one is read by a thread of low priority. Prompts without media are smaller. */
  promptBytesMax: 2 * 1024 * 1024,
  /** Hashing this much takes about a millisecond of the thread that serves calls. */
  hashSliceBytesMax: 1024 * 1024,
  /**
   * A body may take this many reads, and one more for each `bodyReadBytesMin` bytes that have arrived. A read costs
   * more than a few bytes are worth: a client that sends single bytes as chunks would keep the serving thread busy.
   */
  callerBodyReadsMin: 1_024,
  personBodyReadsMin: 64,
  anonymousBodyReadsMin: 64,
  bodyReadBytesMin: 64,
  /** After this many reads of one body, other requests get a turn on the thread. */
  bodyReadsAtOnceMax: 64,
  /** A compressed body may always grow to this size; beyond it, to this many times its compressed size. */
  decodedBytesMin: 1024 * 1024,
  decodedRatioMax: 100,
  /** Bodies that are decompressed at the same time: of all accounts, of one account; and how long one may wait. */
  decodingsMax: 4,
  decodingsOfAccountMax: 1,
  bodyWorkerMsMax: 20_000,
  /** Bodies of callers that are being received at the same time: of all accounts, of one account; and their bytes. */
  callerBodiesMax: 20_000,
  callerBodiesOfAccountMax: 4_096,
  callerBodiesBytesMax: 1024 * 1024 * 1024,
  /** The same for people who are signed in: their number, the bytes of one person, the bytes of all people. */
  personBodiesMax: 1_024,
  personBodiesBytesMax: 8 * 1024 * 1024,
  personsBodiesBytesMax: 64 * 1024 * 1024,
  /** The same for clients that are not authenticated: the size of one body, and how many are received at once. */
  anonymousBodyBytesMax: 16 * 1024,
  anonymousBodyMsMax: 10_000,
  anonymousBodiesMax: 512,
  anonymousBodiesOfNetworkMax: 32,
  anonymousJsonDepthMax: 8,
  anonymousJsonValuesMax: 256,
  /** A request head. Bun is started with a higher limit, so that the gateway refuses, in the caller's dialect. */
  headBytesMax: 32 * 1024,
  /** Parts of a header that is a list. Anybody may send thousands of commas. */
  headerPartsMax: 1_000,
  jsonDepthMax: 256,
  jsonValuesMax: 1_000_000,
  /** Lists and objects among these values, and different field names: both are expensive to build. */
  jsonContainersMax: 250_000,
  jsonNamesMax: 50_000,
  /**
   * A field name in a large body. Several parts read each name; the longest name of any vendor has some dozen bytes.
   */
  jsonNameBytesMax: 16 * 1024,
  modelNameCharsMax: 256,
  /** Model names whose targets are cached. */
  targetGroupsMax: 10_000,
  /** A plain answer is held whole until its settlement is durable. */
  answerBytesMax: 32 * 1024 * 1024,
  errorBodyBytesMax: 64 * 1024,
  /** The head of an upstream's response, together with all informational heads (1xx) before it. */
  responseHeadBytesMax: 64 * 1024,
  /** The parts of a chunked body that are no data: the size line of one chunk, or all trailers. */
  chunkOverheadBytesMax: 4 * 1024,
  /** Unread bytes of an upstream's response. Beyond this, the gateway stops reading the socket. */
  unreadBytesMax: 256 * 1024,
  /** Connecting to an upstream, DNS lookup included; and the TLS handshake after it. */
  connectMsMax: 5_000,
  tlsMsMax: 5_000,
  /** Addresses of one host that are tried. They share the time to connect. */
  addressesTriedMax: 4,
  /** Abandoned connection attempts to one origin. The operating system goes on trying them for two minutes. */
  abandonedConnectsMax: 256,
  /** A proxy's reply to CONNECT. */
  proxyResponseBytesMax: 16 * 1024,
  /** How long a DNS answer is used without a new lookup, and how long while new lookups fail. */
  dnsFreshMsMax: 30_000,
  dnsStaleMsMax: 600_000,
  dnsEntriesMax: 1_000,
  dnsLookupMsMax: 10_000,
  /** A name of a caller: the first wait for a name server, which doubles, and how often each server is asked. */
  dnsTryMsMax: 2_500,
  dnsTriesMax: 2,
  /** Lookups under way, until they have really ended: in all, and of names that callers of one account chose. */
  dnsLookupsMax: 256,
  dnsLookupsOfAccountMax: 32,
  /** How long a call waits for a new lookup of a known name, and the pause after a lookup that failed. */
  dnsRefreshMsMax: 1_000,
  dnsRetryMsMin: 5_000,
  /** Parsed URLs of upstreams that are cached. */
  destinationsCachedMax: 1_000,
  /** Idle connections to one origin. */
  idleConnectionsMax: 256,
  idleConnectionSecondsMax: 30,
  /** One event of a stream, which may contain an image; also everything that is held back of one stream. */
  frameBytesMax: 32 * 1024 * 1024,
  /** What may follow the end of an answer. Beyond this, the connection is closed instead of reused. */
  responseTailBytesMax: 1024 * 1024,
  /** Answers of all calls together that are held in memory. Beyond this, upstreams are read one after another. */
  answersHeldBytesMax: 256 * 1024 * 1024,
  /** What each call may hold of its answer without counting towards `answersHeldBytesMax`. */
  answerUncountedBytesMax: 256 * 1024,
  firstContentMsMax: 120_000,
  betweenChunksMsMax: 60_000,
  attemptsPerCallMax: 3,
  /** The pause before the same channel is tried again. If it would be longer, the caller gets Retry-After instead. */
  retryPauseMsMax: 5_000,
  callMsMax: 600_000,
  /** The longest time that can be configured for models that are known to take longer. */
  longCallMsMax: 3_600_000,
  /** Calls that wait for a free channel, for each target group. */
  queuedCallsMax: 100,
  queuesOfAccountMax: 16,
  queuedMsMax: 5_000,
  settleMsMax: 5_000,
  /** Unsettled calls, of about two kilobytes each. Beyond this, new calls are refused. */
  unsettledCallsMax: 10_000,
  /** Output between two checkpoints of a stream: about two thousand tokens. */
  checkpointBytesMax: 8_000,
  /** Keys of one account, revoked ones included. Applies only to people who manage their own keys. */
  keysOfAccountMax: 10_000,
  /** Address ranges of one key. */
  keyAddressesMax: 100,
  keyNameCharsMax: 100,
  /** How long the key of a playground works. */
  playgroundKeyMsMax: 15 * 60_000,
  playgroundBudgetUsdMax: 10,
  /** How long the old text of a key may stay valid beside the new one. */
  keyOverlapMsMax: 30 * 24 * 3_600_000,
  keysCachedMax: 10_000,
  keysUnknownCachedMax: 10_000,
  keyUnknownMsMax: 5_000,
  qpmMax: 100_000,
  /** Secrets of one kind, replaced ones included. */
  secretsMax: 8,
  /** A replaced secret is kept at least this long: tokens and records that were made with it may still arrive. */
  secretReplacedMsMin: 900_000,
  /** A lease ends by itself after this time. No call lasts longer, so a lost lease is returned. */
  leaseMsMax: 3_660_000,
  /** Keys, accounts and models with limits of their own whose use is held in memory. */
  limitOwnersMax: 1_000_000,
  /** Models with a limit of their own that one key can add before its first ones are forgotten. */
  limitedModelsOfKeyMax: 1_024,
  /** Stored rows of daily usage, each for one limit and one date. */
  storedLimitUsesMax: 100_000,
  /** Rules of operators. All are read again after each change, on the thread that serves calls. */
  limitRulesMax: 10_000,
  modelRoutesMax: 1_000,
  routeMembersMax: 32,
  channelRulesMax: 2_000,
  storedProvidersMax: 200,
  /** A configuration file, and the entries of one of its lists that the gateway is compared with. */
  configFileBytesMax: 4 * 1024 * 1024,
  configEntriesMax: 10_000,
  /** The definition of one provider, as JSON. */
  providerBytesMax: 256 * 1024,
  channelNameCharsMax: 100,
  baseUrlCharsMax: 1_000,
  credentialCharsMax: 16 * 1024,
  /** Extra headers that one channel sends. */
  channelHeadersMax: 16,
  channelHeaderCharsMax: 1_024,
  /** Fields that one channel overrides in the requests of one dialect, and their values as JSON. */
  channelFieldsMax: 32,
  channelFieldsBytesMax: 8 * 1024,
  /** Channels that one request creates or changes. */
  channelsAtOnceMax: 1_000,
  /** A test call on one channel. */
  channelTestMsMax: 60_000,
  /** Asking an upstream which models it has. */
  modelListMsMax: 20_000,
  modelListBytesMax: 8 * 1024 * 1024,
  /** How long a server on this machine may take to list its models, and to say what it is. */
  localServerMsMax: 1_000,
  localServerBytesMax: 1024 * 1024,
  /**
   * How long a provider may take to list its models while a call for an unknown model waits, and the pause between two
   * lists.
   */
  listedModelsMsMax: 5_000,
  listedModelsGapMs: 60_000,
  listedModelsMax: 2_000,
  /**
   * Versions of prices that providers' lists may add: of one model, and of all. Beyond this, an operator sets the
   * price.
   */
  listedPricesOfModelMax: 40,
  listedPricesMax: 50_000,
  /** The models of one local server that are listed. */
  localModelsMax: 500,
  /** Calls for unknown models look for local servers at most this often. */
  localServersGapMs: 2_000,
  /** Unknown model names: the names that each is compared with, and the names whose neighbours are kept. */
  nearestNamesComparedMax: 200,
  nearestNamesKeptMax: 1_000,
  modelListPagesMax: 20,
  modelsListedMax: 10_000,
  weightMax: 1_000_000,
  priorityMax: 1_000,
  channelCapMax: 1_000_000_000,
  proxyUrlCharsMax: 1_000,
  /** Tags of one key or one channel. */
  tagsMax: 20,
  keyPatternsMax: 50,
  ledgerQueueMax: 10_000,
  ledgerBatchMax: 256,
  /** How long the oldest operation may wait before new calls are refused. */
  ledgerQueueMsMax: 1_000,
  retryAfterSecondsMax: 60,
  /** Explain requests of one key. */
  explainedPerMinuteMax: 60,
  explainedChannelsMax: 200,
  /** The request body that an explain request shows. */
  explainedBodyBytesMax: 64 * 1024,
  codesPerBatchMax: 10_000,
  /** Wrong redemption codes of one person, or from one address. */
  codeAttemptsPerMinuteMax: 10,
  /** Names, people and addresses whose recent attempts are counted. */
  attemptCountersMax: 10_000,
  idempotencyKeyCharsMax: 255,
  /** An answer that is stored under its idempotency key; larger answers are not stored. */
  idempotentAnswerBytesMax: 4 * 1024 * 1024,
  idempotentAnswerMsMax: 24 * 3_600_000,
  /** Such answers of one account, and of all, that one process stores in a day. */
  idempotentAnswersOfAccountBytesMax: 512 * 1024 * 1024,
  idempotentAnswersBytesMax: 8 * 1024 * 1024 * 1024,
  /** Calls that continue after their caller disconnected, for an answer that is asked for again, or for its report. */
  callerGoneCallsMax: 256,
  callerGoneCallsOfAccountMax: 64,
  callerGoneMsMax: 30_000,
  /** A request or answer body that is stored for the account of its key. */
  storedBodyBytesMax: 1024 * 1024,
  /** Bodies that wait to be written, of all accounts and of one; beyond this they are dropped. */
  bodiesWaitingBytesMax: 16 * 1024 * 1024,
  bodiesWaitingOfAccountBytesMax: 8 * 1024 * 1024,
  /** Stored bodies on disk, of one account and of all; beyond this the oldest are deleted. */
  bodiesOfAccountBytesMax: 256 * 1024 * 1024,
  bodiesBytesMax: 4 * 1024 * 1024 * 1024,
  /** Text that waits for the token counter, of all calls together. More could not be counted in time. */
  tokenCountBytesMax: 8 * 1024 * 1024,
  tokenCountMsMax: 2_000,
  tokenCounterStartMsMax: 3_000,
  /** The id of a response, tool call, task or file, as a caller or an upstream wrote it. */
  storedIdCharsMax: 256,
  /** One stored response. */
  storedResponseBytesMax: 8 * 1024 * 1024,
  /** Stored responses of one account; beyond this the oldest are deleted. */
  storedResponsesMax: 10_000,
  storedResponsesBytesMax: 512 * 1024 * 1024,
  /** Earlier responses that a response continues: their number, and their bytes together. */
  responseChainMax: 1_000,
  responseChainBytesMax: 32 * 1024 * 1024,
  /** Calls that are answered in the background, of all accounts and of one. */
  backgroundCallsMax: 64,
  backgroundCallsOfAccountMax: 16,
  /** Events of one background call that are held for clients that follow its stream. */
  backgroundEventsBytesMax: 16 * 1024 * 1024,
  /** Clients that follow the events of stored responses, of all accounts and of one. */
  followersMax: 2_048,
  followersOfAccountMax: 128,
  /** WebSockets that are open at the same time: of all accounts, of one account, of one key. */
  socketsMax: 4_096,
  socketsOfAccountMax: 1_024,
  socketsOfKeyMax: 64,
  /** Of an account with no more WebSockets, none with a running response closes because memory is short. */
  socketsSparedMax: 4,
  /** How long a WebSocket may be open. OpenAI has the same limit, so that clients know how to reconnect. */
  socketMsMax: 3_600_000,
  /** How often the key of an idle WebSocket is checked. A connection whose key has ended closes within this time. */
  socketKeyCheckMs: 10_000,
  /** Of one WebSocket: responses at the same time, different values of stream_id (both as OpenAI), waiting messages. */
  socketResponsesMax: 16,
  socketStreamsMax: 32,
  socketMessagesWaitingMax: 32,
  /** A message of a WebSocket that needs no answer. */
  socketNoteBytesMax: 4_096,
  streamIdCharsMax: 256,
  /** Unread bytes of a client. A client that leaves more unread loses its connection. */
  socketBufferBytesMax: 64 * 1024 * 1024,
  /** Conversations that a WebSocket can continue although they are not stored: of one account, and of all accounts. */
  socketTurnsOfAccountBytesMax: 64 * 1024 * 1024,
  socketTurnsBytesMax: 256 * 1024 * 1024,
  /** Reasoning state of one tool call. */
  reasoningStateBytesMax: 256 * 1024,
  reasoningStateMsMax: 7 * 24 * 3_600_000,
  /** Reasoning states of one account; beyond this the oldest are deleted. */
  reasoningStatesMax: 10_000,
  reasoningStatesBytesMax: 64 * 1024 * 1024,
  /** Of all accounts together; beyond this the oldest of the account with the most are deleted. */
  reasoningStatesOfAllBytesMax: 2 * 1024 * 1024 * 1024,
  /** Reasoning state that waits to be written, of all accounts; beyond this it stays in memory only. */
  reasoningWaitingBytesMax: 8 * 1024 * 1024,
  reasoningCachedBytesMax: 32 * 1024 * 1024,
  /** Tasks of one account. */
  tasksOpenMax: 1_000,
  storedTasksMax: 2_000,
  taskBodyBytesMax: 64 * 1024,
  /** How long a task is stored, from its creation. A task that has not ended stays. */
  taskMsMax: 30 * 24 * 3_600_000,
  tasksDueMax: 100,
  /** How long an upstream may take to create a task, and to report its state. */
  taskCreateMsMax: 60_000,
  taskPollMsMax: 20_000,
  /** Tasks whose state is requested at the same time, of all accounts. */
  taskPollsMax: 16,
  /** If an upstream does not know a task this long after its creation, the upstream has deleted it. */
  taskForgottenMsMin: 24 * 3_600_000,
  /** A task that has not ended by then never will. */
  taskRunMsMax: 7 * 24 * 3_600_000,
  tasksListedMax: 500,
  storedFilesMax: 10_000,
  /** References of one account: ids that upstreams returned for containers, stored items and contexts. */
  storedReferencesMax: 50_000,
  storedReferenceMsMax: 30 * 24 * 3_600_000,
  /** References in one answer. */
  referencesOfAnswerMax: 256,
  /** References in one request. */
  referencesOfCallMax: 2_000,
  /** References and URLs in one request. A URL is a reference only where it points at the upstream itself. */
  referencesFoundMax: 10_000,
  filesListedMax: 1_000,
  /** The last bound on file rows of all accounts: one account is refused further files long before. */
  storedFilesBytesMax: 1024 * 1024 * 1024 * 1024,
  /** Files of one account at upstreams; beyond this an upload is refused. */
  filesOfAccountMax: 1_000,
  filesOfAccountBytesMax: 5 * 1024 * 1024 * 1024,
  storedFileMsMax: 30 * 24 * 3_600_000,
  /** How long a provider may take to count tokens. After that, the gateway counts. */
  providerCountMsMax: 5_000,
  /** A longer request is not translated to have its tokens counted. */
  countTranslatedBytesMax: 8 * 1024 * 1024,
  /** The size of a call from which a correction factor is learned. */
  countLearnedBytesMax: 256 * 1024,
  countFactorsMax: 10_000,
  /** Samples of one correction factor before old samples lose weight. */
  countSamplesMax: 10_000,
  /** Media that a caller named by URL: the size and time of one, and how many are fetched at the same time. */
  mediaBytesMax: 20 * 1024 * 1024,
  mediaMsMax: 10_000,
  mediaUrlCharsMax: 8 * 1024,
  mediaFetchesMax: 256,
  /** Calls that wait for their media. Each call fetches four at a time, so these bounds are reached before the one above. */
  mediaCallsMax: 64,
  mediaCallsOfAccountMax: 8,
  /** Media of one call. */
  mediaPerCallMax: 32,
  mediaPerCallBytesMax: 64 * 1024 * 1024,
  /** Model names between the requested name and a real model. */
  routeDepthMax: 8,
  /** The longest pause of a channel, even if its upstream asks for a longer one. */
  channelPauseMsMax: 3_600_000,
  /** A channel use that was never ended is taken for over after this time. */
  channelUseMsMax: 3_660_000,
  /** For one channel: models with a health of their own, and accounts with a circuit breaker of their own. */
  channelModelsMax: 64,
  accountBreakersMax: 16,
  /** Conversations whose channel is remembered (affinity), and for how long. */
  affinitiesMax: 100_000,
  affinityMsMax: 3_600_000,
  /** How long, and for how many accounts and models, an answer in pieces larger than a slice is remembered. */
  largeAnswersMs: 3_600_000,
  largeAnswersMax: 10_000,
  /** Model names with a retry budget of their own. */
  retryGroupsMax: 10_000,
  /** Series of one metric, and models with series of their own. Later ones are counted as `other`. */
  metricSeriesMax: 2_000,
  metricModelsMax: 200,
  /** Queries that wait or run at the same time, and how long one may take. */
  queriesMax: 200,
  queriesOfPersonMax: 16,
  queriesOfStaffMax: 200,
  queryMsMax: 8_000,
  /** Requests at the same time of one person, and of one member of the staff; and changes of others in a minute. */
  personRequestsMax: 16,
  staffRequestsMax: 64,
  personWritesPerMinuteMax: 300,
  pageRowsMax: 200,
  /** Points of one time series in an answer. */
  seriesPointsMax: 1_500,
  /** The period that one search of records may cover. */
  recordSearchMsMax: 90 * 86_400_000,
  /** The longest time that one search for a conversation covers: no index has them. */
  conversationSearchMsMax: 7 * 86_400_000,
  /**
   * Exports at the same time: of all, of one person, of all people of one account; and how many are reserved for
   * staff. An export whose client reads nothing for `exportStallMsMax` is ended. An export reads `exportRowsMax`
   * records at a time.
   */
  exportsMax: 16,
  exportsOfPersonMax: 2,
  exportsOfAccountMax: 4,
  exportsOfStaffMin: 4,
  exportStallMsMax: 30_000,
  /** How often the rights of whoever reads an export or follows calls are checked again. */
  readerCheckMs: 10_000,
  exportRowsMax: 500,
  /** Live streams of one process at the same time: of all, and of one person. */
  liveStreamsMax: 100,
  liveStreamsOfPersonMax: 8,
  /** Requests of one account to delete records that are not finished yet. */
  deletionsOpenMax: 50,
  managementBodyBytesMax: 1024 * 1024,
  managementJsonDepthMax: 64,
  managementJsonValuesMax: 100_000,
  /** A session token. The gateway's own tokens have about 300 characters. */
  tokenCharsMax: 2_000,
  /**
   * The logo of the site as a data: URL. Every start of a page has it, and each change of the settings is audited with
   * it.
   */
  logoCharsMax: 16_384,
  howToPayCharsMax: 2_000,
  supportUrlCharsMax: 500,
  zoneCharsMax: 60,
  tokenSecondsMax: 600,
  /** How long a ticket for a download is valid, and the unused tickets of one session. */
  ticketMsMax: 60_000,
  ticketsOfSessionMax: 100,
  /** A session ends after a week without renewal, and in any case after a month. */
  sessionIdleMsMax: 7 * 24 * 3_600_000,
  sessionMsMax: 30 * 24 * 3_600_000,
  /** Sessions of one person; beyond this the oldest end. */
  sessionsOfPersonMax: 50,
  /** How long ended sessions stay stored, to show who signed in from where. */
  endedSessionMsMax: 90 * 24 * 3_600_000,
  /** How long a used refresh token gets the same next token again: another window of the same browser may send it. */
  refreshGraceMsMax: 10_000,
  /** Used refresh tokens of one session that are remembered. If one of them is sent again, the session ends. */
  usedRefreshTokensMax: 64,
  /** Service tokens of the site, or of one account, without revoked ones; and how often a use of one is stored. */
  serviceTokensMax: 1_000,
  tokenUseNotedMsMin: 60_000,
  /** How long a service token that was revoked or has expired stays stored. */
  endedTokenMsMax: 90 * 24 * 3_600_000,
  setUpMsMax: 3_600_000,
  invitationMsMax: 30 * 24 * 3_600_000,
  invitationsOpenMax: 1_000,
  emailCharsMax: 254,
  personNameCharsMax: 100,
  passwordCharsMin: 10,
  passwordCharsMax: 200,
  /** Passwords that are hashed at the same time, and that wait for it: each costs about 50 ms and 19 MiB. */
  passwordHashesMax: 2,
  passwordsWaitingMax: 16,
  recoveryCodesMax: 10,
  /** Webhooks of one account, and of the site. */
  webhooksOfAccountMax: 10,
  webhooksOfSiteMax: 50,
  webhookUrlCharsMax: 2_000,
  /** One delivery, from the DNS lookup to the head of the response. */
  webhookMsMax: 10_000,
  /** Webhooks that are called at the same time, each with one delivery at a time. */
  webhookCallsMax: 16,
  /** How often, and for how long, a delivery is tried before it is given up. */
  webhookAttemptsMax: 40,
  deliveryMsMax: 24 * 3_600_000,
  webhookPauseMsMax: 3_600_000,
  /** Deliveries that one search for due deliveries reads. */
  dueDeliveriesMax: 200,
  /** Finished deliveries of one webhook that stay stored. */
  finishedDeliveriesMax: 100,
  webhookTestsPerMinuteMax: 10,
  /** How long a price backtest may run. Its client waits at most ten seconds. */
  backtestMsMax: 7_000,
  backtestDaysMax: 366,
  /** Rows of a list that is downloaded as one file. */
  exportPageRowsMax: 1_000,
} as const

assert(bounds.firstContentMsMax < bounds.callMsMax, 'an attempt ends before its call')
assert(bounds.leaseMsMax > bounds.longCallMsMax + bounds.settleMsMax, 'a call ends before its lease')
assert(bounds.callMsMax <= bounds.longCallMsMax, 'a long call is no shorter than any other')
assert(bounds.longCallMsMax < bounds.channelUseMsMax, 'a running attempt is not taken for a lost one')
assert(bounds.frameBytesMax <= bounds.answerBytesMax, 'an event is no longer than an answer')
assert(bounds.frameBytesMax < bounds.socketBufferBytesMax, 'a WebSocket can send the largest event')
assert(bounds.frameBytesMax <= bounds.answersHeldBytesMax, 'one answer does not fill the memory for all answers')
assert(bounds.headBytesMax < bounds.bodyBytesMax, 'a head is smaller than a body')
assert(bounds.storedResponseBytesMax < bounds.storedResponsesBytesMax, 'one response does not drive out all others')
