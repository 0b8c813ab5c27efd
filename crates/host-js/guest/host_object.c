// The functions that `prelude.js`, `web.js` and `abort.js` call.

#include "guest.h"

// A JavaScript string as UTF-8. Half a character becomes three bytes that are none; the host replaces them.
static text_t text_from(JSContext *ctx, JSValueConst value) {
    text_t text = {NULL, 0};
    text.bytes = (char *)JS_ToCStringLen(ctx, &text.length, value);
    return text;
}

static void free_text(JSContext *ctx, text_t text) {
    if (text.bytes) JS_FreeCString(ctx, text.bytes);
}

// call(name, args): begins a request and returns its number.
static JSValue call(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    text_t name = text_from(ctx, argv[0]), args = text_from(ctx, argv[1]);
    JSValue result = JS_EXCEPTION;
    if (name.bytes && args.bytes) {
        uint32_t id = host_call(name.bytes, name.length, args.bytes, args.length);
        result = id ? JS_NewUint32(ctx, id)
                    : JS_ThrowPlainError(ctx, "too many requests and timers are open, or were made in one call");
    }
    free_text(ctx, name);
    free_text(ctx, args);
    return result;
}

enum answer_form { AS_TEXT, AS_BYTES };

// ask(question, a, b, c): what the host knows at once, as a text or as bytes.
static JSValue ask_host(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv, int form) {
    uint32_t question;
    if (JS_ToUint32(ctx, &question, argv[0])) return JS_EXCEPTION;
    text_t texts[3];
    int known = 0;
    for (; known < 3; known++) {
        texts[known] = JS_IsUndefined(argv[1 + known]) ? text_of("") : text_from(ctx, argv[1 + known]);
        if (!texts[known].bytes) break;
    }
    JSValue result = JS_EXCEPTION;
    if (known == 3) {
        text_t answer = ask(question, texts[0], texts[1], texts[2]);
        if (!answer.bytes) result = JS_ThrowOutOfMemory(ctx);
        else if (form == AS_BYTES) result = JS_NewUint8ArrayCopy(ctx, (uint8_t *)answer.bytes, answer.length);
        else result = JS_NewStringLen(ctx, answer.bytes, answer.length);
        release(answer);
    }
    while (known-- > 0)
        if (!JS_IsUndefined(argv[1 + known])) free_text(ctx, texts[known]);
    return result;
}

// finish(kind, text, stack): the call is over.
static JSValue finish(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    text_t kind = text_from(ctx, argv[0]), text = text_from(ctx, argv[1]), stack = text_from(ctx, argv[2]);
    if (kind.bytes && text.bytes && stack.bytes) end_with(kind, text, stack);
    else end_without_memory();
    free_text(ctx, kind);
    free_text(ctx, text);
    free_text(ctx, stack);
    return JS_UNDEFINED;
}

// log(level, text): a line for the operator; the level is a number.
static JSValue write_log(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    uint32_t level;
    if (JS_ToUint32(ctx, &level, argv[0])) return JS_EXCEPTION;
    text_t text = text_from(ctx, argv[1]);
    if (!text.bytes) return JS_EXCEPTION;
    host_log(level, text.bytes, text.length);
    free_text(ctx, text);
    return JS_UNDEFINED;
}

static JSValue now(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    return JS_NewFloat64(ctx, (double)host_now());
}

static uint64_t rotate(uint64_t word, int by) { return word << by | word >> (64 - by); }

// `Math.random`: xoroshiro128+, seeded from the host with the first number of a call. Good for jitter and sampling; what must
// not be guessed comes from `crypto`.
static JSValue next_random(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    static uint64_t state[2];
    if (!state[0] && !state[1]) host_random((uint8_t *)state, sizeof state);
    uint64_t sum = state[0] + state[1], mixed = state[0] ^ state[1];
    state[0] = rotate(state[0], 24) ^ mixed ^ (mixed << 16);
    state[1] = rotate(mixed, 37);
    return JS_NewFloat64(ctx, (double)(sum >> 11) / (double)(1ull << 53));
}

// fillRandom(bytes)
static JSValue fill_random(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    enum { AT_ONCE = 1 << 16 };
    size_t length;
    uint8_t *bytes = JS_GetUint8Array(ctx, &length, argv[0]);
    if (!bytes && length) return JS_EXCEPTION;
    for (size_t at = 0; at < length; at += AT_ONCE) host_random(bytes + at, length - at < AT_ONCE ? length - at : AT_ONCE);
    return JS_UNDEFINED;
}

// A random UUID, version 4.
static JSValue random_uuid(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[16];
    host_random(bytes, sizeof bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    char text[36], *at = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    return JS_NewStringLen(ctx, text, sizeof text);
}

// encode(text): its UTF-8.
static JSValue encode(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    text_t text = text_from(ctx, argv[0]);
    if (!text.bytes) return JS_EXCEPTION;
#ifdef WITH_FAULTS
    if (!strncmp(text.bytes, "fault:", 6)) inject_fault(text.bytes + 6);
#endif
    JSValue bytes = JS_NewUint8ArrayCopy(ctx, (uint8_t *)text.bytes, text.length);
    free_text(ctx, text);
    return bytes;
}

// No prototype: a handler could put a getter there.
JSValue new_host_object(JSContext *ctx) {
    static const JSCFunctionListEntry members[] = {
        JS_CFUNC_DEF("call", 2, call),
        JS_CFUNC_MAGIC_DEF("ask", 4, ask_host, AS_TEXT),
        JS_CFUNC_MAGIC_DEF("askBytes", 4, ask_host, AS_BYTES),
        JS_CFUNC_DEF("finish", 3, finish),
        JS_CFUNC_DEF("log", 2, write_log),
        JS_CFUNC_DEF("now", 0, now),
        JS_CFUNC_DEF("random", 0, next_random),
        JS_CFUNC_DEF("fillRandom", 1, fill_random),
        JS_CFUNC_DEF("randomUUID", 0, random_uuid),
        JS_CFUNC_DEF("encode", 1, encode),
    };
    JSValue host = JS_NewObjectProto(ctx, JS_NULL);
    if (JS_IsException(host)) return host;
    JS_SetPropertyFunctionList(ctx, host, members, sizeof members / sizeof *members);
    return host;
}
