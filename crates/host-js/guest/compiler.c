// The role that parses: compiles modules to bytecode, and tells what is wrong with a handler. It runs no code of a handler's.

#include "guest.h"

static JSRuntime *runtime;
static JSContext *inspected;

// What a compiled module imports is not looked at: names are bound when a runner links the real ones.
static char *resolve_to_nothing(JSContext *ctx, const char *base, const char *specifier, void *opaque) {
    return js_strdup(ctx, "quarterdeck:nothing");
}

static JSValue parse(JSContext *ctx, text_t source, const char *name) {
    return JS_Eval(ctx, source.bytes, source.length, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
}

static JSModuleDef *empty_module(JSContext *ctx, const char *name) {
    JSValue module = parse(ctx, text_of(""), name);
    return JS_IsException(module) ? NULL : JS_VALUE_GET_PTR(module);
}

static JSModuleDef *load_nothing(JSContext *ctx, const char *name, void *opaque) { return empty_module(ctx, name); }

// Tells the host of the exception in a context: its message and its stack.
static void report(JSContext *ctx, void (*to)(text_t message, text_t stack, void *opaque), void *opaque) {
    JSValue thrown = JS_GetException(ctx);
    JSValue message = JS_GetPropertyStr(ctx, thrown, "message"), stack = JS_GetPropertyStr(ctx, thrown, "stack");
    const char *texts[2] = {JS_ToCString(ctx, JS_IsUndefined(message) ? thrown : message), JS_ToCString(ctx, stack)};
    to(text_of(texts[0] ? texts[0] : ""), text_of(texts[1] ? texts[1] : ""), opaque);
    for (int i = 0; i < 2; i++)
        if (texts[i]) JS_FreeCString(ctx, texts[i]);
    JS_FreeValue(ctx, message);
    JS_FreeValue(ctx, stack);
    JS_FreeValue(ctx, thrown);
}

static void end_with_error(text_t message, text_t stack, void *opaque) { end_with(text_of("error"), message, stack); }

static void report_syntax_error(text_t message, text_t stack, void *name) {
    release(ask(QUESTION_SYNTAX_ERROR, text_of(name), message, stack));
}

// The source of a module comes from the host. One that does not parse is reported, and taken as empty.
static JSModuleDef *load_source(JSContext *ctx, const char *name, void *opaque) {
    text_t source = ask(QUESTION_SOURCE, text_of(name), text_of(""), text_of(""));
    if (!source.bytes) {
        JS_ThrowOutOfMemory(ctx);
        return NULL;
    }
    JSValue module = parse(ctx, source, name);
    release(source);
    if (!JS_IsException(module)) return JS_VALUE_GET_PTR(module);
    report(ctx, report_syntax_error, (void *)name);
    return empty_module(ctx, name);
}

EXPORT("boot_compiler") void boot_compiler(size_t memory_limit, size_t stack_limit) {
    __wasm_call_ctors();
    runtime = JS_NewRuntime();
    JS_SetMemoryLimit(runtime, memory_limit);
    JS_SetMaxStackSize(runtime, stack_limit);
    inspected = JS_NewContext(runtime);
}

// Compiles one module. Returns the place of its bytecode, or zero with an end.
EXPORT("compile") place_t compile(char *name, char *source, size_t source_length, uint32_t is_stripped) {
    JS_SetModuleLoaderFunc(runtime, resolve_to_nothing, load_nothing, NULL);
    JSContext *ctx = JS_NewContext(runtime);
    if (!ctx) return 0;
    size_t length = 0;
    uint8_t *bytecode = NULL;
    JSValue module = parse(ctx, (text_t){source, source_length}, name);
    if (!JS_IsException(module)) {
        int flags = JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_SOURCE | (is_stripped ? JS_WRITE_OBJ_STRIP_DEBUG : 0);
        bytecode = JS_WriteObject(ctx, &length, module, flags);
    }
    if (!bytecode) report(ctx, end_with_error, NULL);
    return bytecode ? place_of(bytecode, length) : 0;
}

// Links a module whose imports are the host's to answer, in the context of all that were linked before. Evaluation would be next;
// what it imports first throws. Returns whether it links; if not, the end says why.
EXPORT("link") uint32_t link_module(char *name, char *source, size_t source_length) {
    JS_SetModuleLoaderFunc(runtime, resolve_import, load_source, NULL);
    JSValue promise = JS_Eval(inspected, source, source_length, name, JS_EVAL_TYPE_MODULE);
    if (JS_IsException(promise)) {
        report(inspected, report_syntax_error, "");
        return 0;
    }
    JS_FreeValue(inspected, promise);
    return 1;
}

// Whether a source is a module. What was parsed stays in its context, so that each has one of its own.
EXPORT("parses") uint32_t parses(char *source, size_t source_length) {
    JS_SetModuleLoaderFunc(runtime, resolve_to_nothing, load_nothing, NULL);
    JSContext *ctx = JS_NewContext(runtime);
    if (!ctx) return 0;
    JSValue module = parse(ctx, (text_t){source, source_length}, "quarterdeck:parsed");
    uint32_t is_module = !JS_IsException(module);
    if (!is_module) JS_FreeValue(ctx, JS_GetException(ctx));
    JS_FreeContext(ctx);
    release((text_t){source, source_length});
    return is_module;
}
