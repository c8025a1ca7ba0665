// Everything has a limit, limits have names, names end in unit and bound.

import { assert } from './assert.ts'

export const bounds = {
  /** Request body, after decoding. */
  bodyBytesMax: 32 * 1024 * 1024,
  bodyMsMax: 60_000,
  /** A body up to this size is read in one piece, and its JSON on the thread that serves calls. */
  smallBodyBytesMax: 64 * 1024,
  /** About a millisecond of the thread that serves calls. */
  hashedAtOnceBytesMax: 1024 * 1024,
  /**
   * A body may take so many reads, and one more for each so many bytes that have come. A read costs more than what a
   * few bytes are worth: whoever sends single bytes as chunks would keep the serving thread busy for nothing.
   */
  callerBodyReadsMin: 1_024,
  personBodyReadsMin: 64,
  strangerBodyReadsMin: 64,
  bodyReadBytesMin: 64,
  /** Beyond the first ones, everybody else has a turn after so many reads of one body. */
  bodyReadsAtOnceMax: 64,
  /** A compressed body may become this large whatever its size, and this many times its size beyond that. */
  decodedBytesMin: 1024 * 1024,
  decodedRatioMax: 100,
  /** Bodies that are decoded at once, of all accounts and of one, and how long one may wait for its turn. */
  decodingsMax: 4,
  decodingsOfAccountMax: 1,
  bodyTurnMsMax: 20_000,
  /** Bodies of callers that are on their way at once, of all accounts and of one; and the bytes of all. */
  callerBodiesMax: 20_000,
  callerBodiesOfAccountMax: 4_096,
  callerBodiesBytesMax: 1024 * 1024 * 1024,
  /** The same of people who are signed in, of one and of all. */
  personBodiesMax: 1_024,
  personBodiesBytesMax: 8 * 1024 * 1024,
  personsBodiesBytesMax: 64 * 1024 * 1024,
  /** Of those who have not said who they are: what one body may be, and how many are on their way at once. */
  strangerBodyBytesMax: 16 * 1024,
  strangerBodyMsMax: 10_000,
  strangerBodiesMax: 512,
  strangerBodiesOfNetworkMax: 32,
  strangerJsonDepthMax: 8,
  strangerJsonValuesMax: 256,
  /** Request head; Bun is started with room for more, so that the refusal is ours and in the caller's dialect. */
  headBytesMax: 32 * 1024,
  jsonDepthMax: 256,
  jsonValuesMax: 1_000_000,
  /** Lists and objects among them, and different names of fields: what is costly to build. */
  jsonContainersMax: 250_000,
  jsonNamesMax: 50_000,
  /** Of a large body: each name is read by several, and none that a vendor knows has more than some dozens of bytes. */
  jsonNameBytesMax: 16 * 1024,
  modelNameCharsMax: 256,
  /** Names of models of which it is remembered how they are reached. */
  laneGroupsMax: 10_000,
  /** A plain answer is held whole until its settle is durable. */
  answerBytesMax: 32 * 1024 * 1024,
  errorBodyBytesMax: 64 * 1024,
  /** An upstream's head, with all informational ones before it. */
  answerHeadBytesMax: 64 * 1024,
  /** What is no data in a chunked body: the size line of one chunk, or all trailers. */
  chunkOverheadBytesMax: 4 * 1024,
  /** Of an answer that nobody reads, before its socket is no longer read either. */
  unreadBytesMax: 256 * 1024,
  /** To be connected to an upstream, its name looked up, and for its handshake after that. */
  connectMsMax: 5_000,
  tlsMsMax: 5_000,
  /** Of one host; the time to connect is shared among them. */
  addressesTriedMax: 4,
  /** To one origin: connections that were given up, which the system goes on trying for two minutes. */
  givenUpConnectsMax: 256,
  /** What a proxy says of a tunnel. */
  proxyAnswerBytesMax: 16 * 1024,
  /** How long it is taken for granted where a name leads, and how long where nobody can be asked. */
  namesFreshMsMax: 30_000,
  namesKnownMsMax: 600_000,
  namesKnownMax: 1_000,
  nameLookupMsMax: 10_000,
  /** For news of a name that is known, and before the next try when there were none. */
  nameRefreshMsMax: 1_000,
  nameRetryMsMin: 5_000,
  /** Addresses of calls that are kept taken apart. */
  targetsKeptMax: 1_000,
  /** To one origin. */
  idleConnectionsMax: 256,
  idleConnectionSecondsMax: 30,
  /** One event of a stream, which may hold a picture, and everything held back of one stream. */
  frameBytesMax: 32 * 1024 * 1024,
  /** Of an answer that is over, before its connection is closed instead of used again. */
  answerTailBytesMax: 1024 * 1024,
  /** Of the answers of all calls together what is held in memory; beyond that upstreams are read one after another. */
  answersHeldBytesMax: 256 * 1024 * 1024,
  /** What one call holds of its answer without being counted in that. */
  answerUncountedBytesMax: 256 * 1024,
  firstContentMsMax: 120_000,
  betweenChunksMsMax: 60_000,
  attemptsPerCallMax: 3,
  /** Before the same channel is tried again; whoever should wait longer is told so. */
  retryPauseMsMax: 5_000,
  callMsMax: 600_000,
  /** The most that a model which is known to take longer may be given instead. */
  longCallMsMax: 3_600_000,
  /** Calls that wait for a free channel, of one group of models. */
  waitingCallsMax: 100,
  waitingLinesOfAccountMax: 16,
  waitingMsMax: 5_000,
  settleMsMax: 5_000,
  /** Calls that are over and could not be written down yet, each some two kilobytes, before new ones are refused. */
  owedSettlesMax: 10_000,
  /** Of output between two checkpoints of a stream: two thousand tokens. */
  checkpointBytesMax: 8_000,
  /** Also those that are revoked; only for those who manage their own. */
  keysOfAccountMax: 10_000,
  /** Ranges of addresses of one key. */
  keyAddressesMax: 100,
  keyNameCharsMax: 100,
  /** How long the old text of a key may work beside the new one. */
  keyOverlapMsMax: 30 * 24 * 3_600_000,
  keysCachedMax: 10_000,
  keysUnknownCachedMax: 10_000,
  keyUnknownMsMax: 5_000,
  qpmMax: 100_000,
  /** Of one kind, with those that are on their way out. */
  secretsMax: 8,
  /** One that was replaced is not let go sooner: a token may still be shown, and what was made with it still come. */
  secretReplacedMsMin: 900_000,
  /** How long a call may have a place under a limit: no call lasts longer, and what is lost comes back. */
  leaseMsMax: 3_660_000,
  /** Keys, accounts and models with limits of their own that are remembered at once. */
  limitOwnersMax: 1_000_000,
  /** Of models with a limit of their own, those that one key may bring up before the first are forgotten. */
  limitedModelsOfKeyMax: 1_024,
  /** What is written down of day limits, each a name and a date. */
  limitDebtsMax: 100_000,
  /** What an operator lays down is read whole, on the thread that serves calls, after each change. */
  limitRulesMax: 10_000,
  modelRoutesMax: 1_000,
  routeMembersMax: 32,
  channelRulesMax: 2_000,
  storedProvidersMax: 200,
  /** The definition of one provider, as JSON. */
  providerBytesMax: 256 * 1024,
  channelNameCharsMax: 100,
  baseUrlCharsMax: 1_000,
  credentialCharsMax: 16 * 1024,
  /** Headers that one channel sends besides its own. */
  channelHeadersMax: 16,
  channelHeaderCharsMax: 1_024,
  /** Fields that one channel changes in the requests of one dialect, and their values as JSON. */
  channelFieldsMax: 32,
  channelFieldsBytesMax: 8 * 1024,
  /** Made or changed by one request. */
  channelsAtOnceMax: 1_000,
  /** A trial call on one channel. */
  trialMsMax: 60_000,
  /** Asking an upstream which models it has. */
  modelListMsMax: 20_000,
  modelListBytesMax: 8 * 1024 * 1024,
  modelListPagesMax: 20,
  modelsListedMax: 10_000,
  weightMax: 1_000_000,
  priorityMax: 1_000,
  channelCapMax: 1_000_000_000,
  proxyUrlCharsMax: 1_000,
  /** Of one key or one channel. */
  tagsMax: 20,
  keyPatternsMax: 50,
  ledgerQueueMax: 10_000,
  ledgerBatchMax: 256,
  /** How long the oldest operation may wait before new calls are refused. */
  ledgerQueueMsMax: 1_000,
  retryAfterSecondsMax: 60,
  /** Calls that are only explained, of one key. */
  explainedPerMinuteMax: 60,
  explainedChannelsMax: 200,
  /** Of the request that would be sent. */
  explainedBodyBytesMax: 64 * 1024,
  codesPerBatchMax: 10_000,
  /** That one person, or one address, may try to redeem and are none. */
  codeTriesPerMinuteMax: 10,
  /** Names, people and addresses of which it is remembered how often they tried something. */
  triersMax: 10_000,
  idempotencyKeyCharsMax: 255,
  /** Of an answer that is kept for its idempotency key; a larger one is not kept. */
  keptAnswerBytesMax: 4 * 1024 * 1024,
  keptAnswerMsMax: 24 * 3_600_000,
  /** Calls that go on to their end after their caller left, so that it can be asked for again. */
  aloneCallsMax: 64,
  aloneCallsOfAccountMax: 16,
  aloneMsMax: 30_000,
  /** Of a request or an answer that is kept for its key's owner. */
  keptBodyBytesMax: 1024 * 1024,
  /** Bodies on their way to the disk, of all accounts and of one; beyond that they are dropped. */
  bodiesWaitingBytesMax: 16 * 1024 * 1024,
  bodiesWaitingOfAccountBytesMax: 8 * 1024 * 1024,
  /** Kept bodies as they are on the disk, of one account and of all; beyond that the oldest go. */
  bodiesOfAccountBytesMax: 256 * 1024 * 1024,
  bodiesBytesMax: 4 * 1024 * 1024 * 1024,
  /** Text that waits to be counted, of all calls together. More would not be counted in time. */
  tokenCountBytesMax: 8 * 1024 * 1024,
  tokenCountMsMax: 2_000,
  tokenCounterStartMsMax: 3_000,
  /** The id of a response, a tool call, a task or a file, as a caller or an upstream gives it. */
  keptIdCharsMax: 256,
  /** What is kept of one response. */
  keptResponseBytesMax: 8 * 1024 * 1024,
  /** Of one account; beyond that the oldest go. */
  keptResponsesMax: 10_000,
  keptResponsesBytesMax: 512 * 1024 * 1024,
  /** Responses before a response, and all they hold together. */
  responseChainMax: 1_000,
  responseChainBytesMax: 32 * 1024 * 1024,
  /** Calls that are answered in the background, of all accounts and of one. */
  backgroundCallsMax: 64,
  backgroundCallsOfAccountMax: 16,
  /** Of events that are held for whoever listens to one of them. */
  backgroundEventsBytesMax: 16 * 1024 * 1024,
  /** Reasoning state of one tool call. */
  keptReasoningBytesMax: 256 * 1024,
  keptReasoningMsMax: 7 * 24 * 3_600_000,
  /** Of one account; beyond that the oldest go. */
  keptReasoningsMax: 10_000,
  keptReasoningsBytesMax: 64 * 1024 * 1024,
  /** Of all accounts together; beyond that the oldest go of the one that has the most. */
  allReasoningsBytesMax: 2 * 1024 * 1024 * 1024,
  /** On its way to the disk, of all accounts; beyond that it is kept in memory only. */
  reasoningWaitingBytesMax: 8 * 1024 * 1024,
  reasoningCachedBytesMax: 32 * 1024 * 1024,
  /** Of one account. */
  tasksOpenMax: 1_000,
  tasksKeptMax: 2_000,
  taskBodyBytesMax: 64 * 1024,
  /** From its beginning; one that is not over stays. */
  taskMsMax: 30 * 24 * 3_600_000,
  tasksDueMax: 100,
  /** How long an upstream may take to begin one, and to say how it is. */
  taskBeginMsMax: 60_000,
  taskLookMsMax: 20_000,
  /** Asked for at once, of all accounts. */
  taskLooksMax: 16,
  /** An upstream that has never heard of a task this long after its beginning has forgotten it. */
  taskForgottenMsMin: 24 * 3_600_000,
  /** One that has not ended by then never will. */
  taskUnderWayMsMax: 7 * 24 * 3_600_000,
  tasksListedMax: 500,
  keptFilesMax: 10_000,
  /** Ids that upstreams gave in answers to one account: of containers, stored items, contexts. */
  keptReferencesMax: 50_000,
  keptReferenceMsMax: 30 * 24 * 3_600_000,
  /** Of one answer. */
  referencesOfAnswerMax: 256,
  /** Things kept at an upstream that one request may name. */
  referencesOfCallMax: 2_000,
  /** The same with addresses, which name something kept only where they lead to the upstream itself. */
  referencesFoundMax: 10_000,
  keptFilesListedMax: 1_000,
  /** Of all accounts' rows this is only the last bound: an account is refused further files long before. */
  keptFilesBytesMax: 1024 * 1024 * 1024 * 1024,
  /** Files of one account at upstreams; beyond that an upload is refused. */
  filesOfAccountMax: 1_000,
  filesOfAccountBytesMax: 5 * 1024 * 1024 * 1024,
  keptFileMsMax: 30 * 24 * 3_600_000,
  /** For a provider's own count; then it is counted here. */
  countAskedMsMax: 5_000,
  /** A longer request is not translated for a count. */
  countTranslatedBytesMax: 8 * 1024 * 1024,
  /** Of a call that a factor is learned from. */
  countLearnedBytesMax: 256 * 1024,
  countFactorsMax: 10_000,
  /** Counts that a factor is learned from, before the old ones fade. */
  countSamplesMax: 10_000,
  /** Media that a caller named by its address, of one address and of all at once. */
  mediaBytesMax: 20 * 1024 * 1024,
  mediaMsMax: 10_000,
  mediaUrlCharsMax: 8 * 1024,
  mediaFetchesMax: 64,
  /** Calls that wait for theirs, each for four at a time. */
  mediaCallsMax: 64,
  mediaCallsOfAccountMax: 8,
  /** Of one call. */
  mediaPerCallMax: 32,
  mediaPerCallBytesMax: 64 * 1024 * 1024,
  /** Names of models on the way from one to a real model. */
  routeDepthMax: 8,
  /** However long an upstream asks to be left alone. */
  channelClosedMsMax: 3_600_000,
  /** An attempt whose end nobody told is over by then. */
  turnMsMax: 3_660_000,
  /** Of one channel: models that are watched one by one, and accounts for which alone it is closed. */
  channelModelsMax: 64,
  ownBreakersMax: 16,
  /** Conversations of which it is remembered which channel has them, and for how long at most. */
  conversationsKeptMax: 100_000,
  conversationKeptMsMax: 3_600_000,
  /** Names of models whose calls are counted to bound what is tried again. */
  retryGroupsMax: 10_000,
  /** Of one metric, and models that have series of their own; what comes later is counted as other. */
  metricSeriesMax: 2_000,
  metricModelsMax: 200,
  /** What people look at: questions at once, how long one may take, rows of a page, bytes of what they send. */
  deskQuestionsMax: 200,
  deskMsMax: 8_000,
  /** Asked at once by one person, and by one who runs the site; and what one who does not may change in a minute. */
  personAsksMax: 16,
  staffAsksMax: 64,
  personWritesPerMinuteMax: 300,
  pageRowsMax: 200,
  /** Of one answer with figures step by step. */
  seriesPointsMax: 1_500,
  /** The time that one search of records may be for. */
  recordSearchMsMax: 90 * 86_400_000,
  /**
   * Exports at once: of all, of one person, of all people of one account; and how many places are kept for those who
   * run the site. A reader who takes nothing for so long loses the place. One export reads so many records at a time.
   */
  exportsMax: 16,
  exportsOfPersonMax: 2,
  exportsOfAccountMax: 4,
  exportsOfStaffMin: 4,
  exportStallMsMax: 30_000,
  exportRowsMax: 500,
  /** Orders of one account to delete records that are not carried out yet. */
  deletionsOpenMax: 50,
  managementBodyBytesMax: 1024 * 1024,
  managementJsonDepthMax: 64,
  managementJsonValuesMax: 100_000,
  /** Of a management token; ours have some 300. */
  tokenCharsMax: 2_000,
  tokenSecondsMax: 600,
  /** A session that is not renewed for a week is over, and each one is after a month. */
  sessionIdleMsMax: 7 * 24 * 3_600_000,
  sessionMsMax: 30 * 24 * 3_600_000,
  /** Of one person; beyond that the oldest end. */
  sessionsOfPersonMax: 50,
  /** Sessions that are over stay for a while: who signed in from where. */
  sessionKeptMsMax: 90 * 24 * 3_600_000,
  /** How long a token that renews a session may come again, from another window of the same browser. */
  refreshGraceMsMax: 10_000,
  /** Of one session, those that were used: one that comes again ends the session. */
  refreshesKeptMax: 64,
  setUpMsMax: 3_600_000,
  invitationMsMax: 30 * 24 * 3_600_000,
  invitationsOpenMax: 1_000,
  emailCharsMax: 254,
  personNameCharsMax: 100,
  passwordCharsMin: 10,
  passwordCharsMax: 200,
  /** Passwords that are hashed at once, and that wait for it: each costs some 50 ms and 19 MiB. */
  passwordHashesMax: 2,
  passwordsWaitingMax: 16,
  recoveryCodesMax: 10,
  /** Of one account, and of the site. */
  webhooksOfAccountMax: 10,
  webhooksOfSiteMax: 50,
  webhookUrlCharsMax: 2_000,
  /** For one that is told something, from the look at its name to the head of its answer. */
  webhookMsMax: 10_000,
  /** Told something at once, each of them one thing at a time. */
  webhooksToldMax: 16,
  /** How often, and for how long, something is tried before it is given up. */
  webhookAttemptsMax: 40,
  webhookTriedMsMax: 24 * 3_600_000,
  webhookPauseMsMax: 3_600_000,
  /** Looked at in one look for what is due. */
  webhooksLookedAtMax: 200,
  /** Of one webhook: what is kept of what is over. */
  webhookKeptMax: 100,
  webhookTestsPerMinuteMax: 10,
  /** How long it is worked out what calls would have cost; whoever asks waits no longer than ten seconds. */
  backtestMsMax: 7_000,
  backtestDaysMax: 366,
  /** Of a list that is told as a file, in one piece. */
  exportPageRowsMax: 1_000,
} as const

assert(bounds.firstContentMsMax < bounds.callMsMax, 'an attempt ends before its call')
assert(bounds.leaseMsMax > bounds.longCallMsMax + bounds.settleMsMax, 'a call ends before its lease')
assert(bounds.callMsMax <= bounds.longCallMsMax, 'a long call is no shorter than any other')
assert(bounds.longCallMsMax < bounds.turnMsMax, 'an attempt that is under way is not taken for a lost one')
assert(bounds.frameBytesMax <= bounds.answerBytesMax, 'an event is no longer than an answer')
assert(bounds.frameBytesMax <= bounds.answersHeldBytesMax, 'one answer does not fill what there is for all')
assert(bounds.headBytesMax < bounds.bodyBytesMax, 'a head is smaller than a body')
assert(bounds.keptResponseBytesMax < bounds.keptResponsesBytesMax, 'one response does not drive out all others')
