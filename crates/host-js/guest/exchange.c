// Texts between the engine and the host.

#include "guest.h"

// `wasm-shim` of rquickjs-sys has one clock, in microseconds.
double __rquickjs_host_now_us(void) { return (double)host_now() * 1000.0; }

static uint8_t *the_end;
static size_t the_end_length;

// Room for a text of the host's, with a zero after it, which the parser of JSON wants.
EXPORT("allocate") uint8_t *allocate(size_t length) {
    uint8_t *room = malloc(length + 1);
    if (room) room[length] = 0;
    return room;
}

void release(text_t input) { free(input.bytes); }

text_t text_of(const char *bytes) { return (text_t){(char *)bytes, strlen(bytes)}; }

place_t place_of(const void *bytes, size_t length) { return ((place_t)(uintptr_t)bytes << 32) | length; }

text_t ask(enum question question, text_t a, text_t b, text_t c) {
    size_t length = host_ask(question, a.bytes, a.length, b.bytes, b.length, c.bytes, c.length);
    text_t answer = {malloc(length + 1), length};
    if (!answer.bytes) return answer;
    host_take((uint8_t *)answer.bytes);
    answer.bytes[length] = 0;
    return answer;
}

// A byte with the length of the kind, the kind, four bytes with the length of the text, the text, the stack.
void end_with(text_t kind, text_t text, text_t stack) {
    if (the_end) return;
    size_t length = 1 + kind.length + 4 + text.length + stack.length;
    uint8_t *at = malloc(length);
    if (!at) return end_without_memory();
    the_end = at;
    the_end_length = length;
    uint32_t text_length = text.length;
    *at++ = kind.length;
    memcpy(at, kind.bytes, kind.length);
    memcpy(at += kind.length, &text_length, 4);
    memcpy(at += 4, text.bytes, text.length);
    memcpy(at += text.length, stack.bytes, stack.length);
}

void end_without_memory(void) {
    static uint8_t no_memory[] = "\5limit\6\0\0\0memory";
    if (the_end) return;
    the_end = no_memory;
    the_end_length = sizeof no_memory - 1;
}

place_t ending(void) { return the_end ? place_of(the_end, the_end_length) : 0; }

char *resolve_import(JSContext *ctx, const char *base, const char *specifier, void *opaque) {
    text_t answer = ask(QUESTION_RESOLVE, text_of(base), text_of(specifier), text_of(""));
    if (!answer.bytes) {
        JS_ThrowOutOfMemory(ctx);
        return NULL;
    }
    char *name = NULL;
    // A plus before the name of the module, a minus before the reason why there is none.
    if (answer.bytes[0] == '+') name = js_strndup(ctx, answer.bytes + 1, answer.length - 1);
    else JS_ThrowReferenceError(ctx, "%s", answer.bytes + 1);
    release(answer);
    return name;
}
