// Generated from the HTTP shapes; rewrite it with
//   UPDATE_EXPECT=1 cargo test -p quarterdeck-server the_pages_types_follow_the_document
// tests/browser/tsconfig.json makes the names known to the pages' modules.

declare namespace Api {
  type AuditLine = { seq?: number; event: string; source?: string; time: string; sessionId?: string; clientId?: string; toolId?: null | string; ok?: boolean; errorType?: ErrorType };
  type AuditPage = { lines: AuditLine[]; next: number | null; lookedAt: number; damagedLines: number };
  type AuditVerification = { isWhole: boolean | null; lines: number | null; unconfirmed: number | null; bytes: number; fault: string | null };
  type Block = { clientId: string; untilMs: number; message: string; sessionId: string; atMs: number };
  type BlockList = { blocks: Block[]; total: number };
  type ChatRequest = { message: string; id?: string | null; sessionId?: string | null; timeZone?: any; locale?: any } | { messages: PostedMessage[]; trigger?: any; messageId?: string | null; id?: string | null; sessionId?: string | null; timeZone?: any; locale?: any };
  type Completion = { id: string; object: "chat.completion"; created: number; model: string; choices: ({ index: 0; message: { role: "assistant"; content: string }; finish_reason: "stop" | "length" | "content_filter"; logprobs: null })[]; usage: Usage };
  type CompletionChunk = { id: string; object: "chat.completion.chunk"; created: number; model: string; choices: ({ index: 0; delta: { role?: "assistant"; content?: string }; finish_reason: "stop" | "length" | "content_filter" | null })[]; usage?: Usage } | OpenAiError;
  type CompletionRequest = { model?: string | null; messages: ({ role: "system" | "developer" | "user" | "assistant" | "tool" | "function"; content?: any })[]; stream?: any; stream_options?: any };
  type ConfirmationAnswer = { token: string; approve: boolean };
  type ConfirmationRequest = { token?: string; expires: number; tool: string; args: any; preview: string; reason?: string };
  type Conversation = { id: string; mode: "text"; registryVersion: string; isRunning: boolean; messages: UiMessage[] };
  type EraseRequest = { clientId: string; confirm: "erase" };
  type EraseResult = { rows: number; isComplete: boolean };
  type Error = { error: { type: ErrorType; message: string; retryable: boolean; details?: any }; timeoutUntil?: string };
  type ErrorType = "VALIDATION" | "NOT_FOUND" | "MODE_RESTRICTED" | "BUDGET_EXCEEDED" | "LOOP_DETECTED" | "UNAVAILABLE" | "CONFIRMATION_REQUIRED" | "CONFIRMATION_EXPIRED" | "CONFIRMATION_DENIED" | "CONFIRMATION_INVALID" | "SESSION_INACTIVE" | "SESSION_ACTIVE" | "BLOCKED" | "TRANSIENT" | "RATE_LIMIT" | "AUTH" | "CONFLICT" | "PERMANENT" | "CANCELLED" | "INTERNAL";
  type Gate = { gate: string; verdict: "passed" | "changed" | "reserved" | "replayed" | "refused" | "asked" | "approved" | "not_reached"; note?: any };
  type LiveEvent = AuditLine | { lost: number };
  type Me = { clientId: string; authenticated: boolean; block: { timeoutUntil: string; message: string; secondsLeft: number } | null; model: string; isRehearsal: boolean; voice: { model: string; isRehearsal: boolean } | null };
  type Meta = { toolId: string; toolVersion: string; registryVersion: string; responseSchemaVersion: string; duration: number; timestamp: string; retryCount?: number; parentCallId?: string; backgroundTaskId?: string; _idempotent_cache_hit?: boolean; _original_turn?: number };
  type Metrics = { responseSizes: Record<string, Record<string, number>>; responseTokens: Record<string, Record<string, number>>; latency: Record<string, Record<string, number>>; context: Record<string, number>; loopDetection: Record<string, number>; tools: Record<string, { calls: number; errors: number }>; sessions: Record<string, number>; audit: Record<string, number>; handlers: Record<string, number>; connections: Record<string, number>; memory: Record<string, number> };
  type Model = { id: string; object: "model"; created: number; owned_by: string };
  type ModelList = { object: "list"; data: Model[] };
  type OpenAiError = { error: { message: string; type: "invalid_request_error" | "authentication_error" | "rate_limit_error" | "server_error"; param: string | null; code: string | null }; timeoutUntil?: string };
  type Overview = { now: number; registry: { version: string; commit: string | null; tools: number; isLocked: boolean }; sessions: { active: number; text: number; voice: number; total: number; turns: number }; models: { text: string; voice: string | null }; audit: { isKept: boolean; lostLines: number }; tools: ToolOverview[] };
  type PlaygroundCall = { tool: string; args?: Record<string, any>; mode?: "text" | "voice"; approve?: boolean };
  type PlaygroundResponse = { sessionId: string; response: ToolResponse; gates: Gate[] | null; question: string | null; reason: string | null; arguments: Record<string, any> | null; messages: any[] };
  type PostedMessage = { id?: any; role: string; parts?: any };
  type Quarantine = { toolId: string; strikes: number; stuckThreads: number; retryAfterMs: number };
  type QuarantineList = { quarantines: Quarantine[]; stuckThreads: number };
  type Readiness = { ready: boolean; registryLocked: boolean; storeWritable: boolean; draining: boolean };
  type RegistryChange = { previous: string; isBreaking: boolean; changes: ToolChange[] };
  type RegistryTool = { id: string; version: string; category: "retrieval" | "action" | "utility"; summary: string; description: string; sideEffects: "none" | "read_only" | "writes"; requiresConfirmation: true | false | "policy"; allowedModes: ("text" | "voice")[]; latencyBudgetMs: number; parameters: Record<string, any>; example: Record<string, any> | null };
  type RegistryView = { version: string; contentHash: string; commit: string | null; isLocked: boolean; tools: RegistryTool[]; change: RegistryChange | null };
  type Series = { everyMs: number; at: number[]; text: number[]; voice: number[]; tools: Record<string, ToolColumns> };
  type SessionList = { sessions: SessionSummary[]; matching: number; lookedAt: number; isComplete: boolean };
  type SessionSummary = { id: string; clientId: string; mode: "text" | "voice"; isActive: boolean; turns: number; calls: number; registryVersion: string; createdMs: number; seenMs: number };
  type Timeline = { session: SessionSummary; state: Record<string, any> | null; timeline: AuditLine[]; isComplete: boolean; isKept: boolean };
  type Tool = { id: string; version: string; category: "retrieval" | "action" | "utility"; summary: string; description: string; sideEffects: "none" | "read_only" | "writes"; requiresConfirmation: true | false | "policy"; allowedModes: ("text" | "voice")[]; latencyBudgetMs: number };
  type ToolChange = { tool: string; effect: "breaks" | "changes" | "adds"; what: string; example?: any };
  type ToolColumns = { calls: number[]; errors: number[]; refused: number[]; p50: (number | null)[]; p95: (number | null)[]; tokens: (number | null)[]; tokensP95: (number | null)[] };
  type ToolDetails = { id: string; version: string; category: "retrieval" | "action" | "utility"; summary: string; description: string; sideEffects: "none" | "read_only" | "writes"; requiresConfirmation: true | false | "policy"; allowedModes: ("text" | "voice")[]; latencyBudgetMs: number; parameters: Record<string, any>; documentation: string };
  type ToolError = { type: ErrorType; message: string; retryable: boolean; details?: any; suggestion?: string; partialSideEffects?: boolean; idempotencyRequired?: boolean; retryAfterMs?: number; maxRetries?: number; confirmation_request?: ConfirmationRequest };
  type ToolList = { registryVersion: string; commit: string | null; tools: Tool[] };
  type ToolOverview = { id: string; version: string; category: "retrieval" | "action" | "utility"; summary: string; description: string; sideEffects: "none" | "read_only" | "writes"; requiresConfirmation: true | false | "policy"; allowedModes: ("text" | "voice")[]; latencyBudgetMs: number; health: "idle" | "well" | "slow" | "failing" | "unclear"; lately: { calls: number; errors: number }; figures: Record<string, number> };
  type ToolResponse = { ok: true; data: any; intents?: { type: any }[]; meta: Meta } | { ok: false; error: ToolError; intents?: { type: any }[]; meta: Meta };
  type UiMessage = { id: string; role: "user" | "assistant"; parts: UiMessagePart[]; metadata: any };
  type UiMessagePart = { type: "text"; text: string; state?: string } | { type: "dynamic-tool"; toolName: string; toolCallId: string; input: any; state: "input-available" | "output-available" | "output-error" | "output-denied"; output?: ToolResponse; errorText?: string } | { type: string; id?: string; data: any };
  type UiStreamPart = { type: "start"; messageId: string; messageMetadata: { sessionId: string } } | { type: "start-step" } | { type: "finish-step" } | { type: "text-start"; id: string } | { type: "text-delta"; id: string; delta: string } | { type: "text-end"; id: string } | { type: "reasoning-start"; id: string } | { type: "reasoning-delta"; id: string; delta: string } | { type: "reasoning-end"; id: string } | { type: "tool-input-available"; toolCallId: string; toolName: string; input: any; dynamic: boolean } | { type: "tool-input-error"; toolCallId: string; toolName: string; input: any; errorText: string; dynamic: boolean } | { type: "tool-approval-request"; approvalId: string; toolCallId: string } | { type: "tool-output-available"; toolCallId: string; output: ToolResponse; dynamic: boolean } | { type: "tool-output-error"; toolCallId: string; errorText: string; dynamic: boolean } | { type: "tool-output-denied"; toolCallId: string } | { type: "error"; errorText: string } | { type: "abort"; reason: string } | { type: "finish"; finishReason: "stop" | "length" | "content-filter" | "tool-calls" | "error"; messageMetadata: { usage: { inputTokens: number; outputTokens: number; totalTokens: number } } } | { type: string; id?: string; data: any };
  type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  type VoiceTicket = { ticket: string; expiresInSeconds: number };
  type VoiceMessage = { type: "ready"; sessionId: string; resumeToken: string; resumed: boolean; toolsVersion: string; provider: string; audio: { input: { encoding: string; rate: number; channels: number }; output: { encoding: string; rate: number; channels: number } } } | { type: "transcript"; role: "user" | "assistant"; text: string; final: boolean; late?: boolean } | { type: "tool_call"; callId: string; name: string; args: any } | { type: "tool_result"; callId: string; ok: boolean; duration: number; error?: { type: ErrorType; message: string; retryable: boolean }; gates?: Gate[] } | { type: "confirmation_request"; callId: string; token: string | null; tool: string; args: any; preview: string; reason?: string; expires: number } | { type: "progress"; callId: string; text: string } | { type: "interrupted" } | { type: "turn_complete" } | { type: "timeout"; durationSeconds: number; timeoutUntil: string; farewellMessage: string } | { type: "session_end"; reason: string; closingMessage: string | null; textResponse: string | null } | { type: "error"; error: { type: ErrorType; message: string; retryable: boolean } } | { type: "going_away"; inMs: number } | { type: "message"; data: any } | { type: "pong" };
}
