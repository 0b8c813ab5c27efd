// The role that runs a handler. It has no parser: its modules come as bytecode that the other role wrote.
//
// The host boots a runner, gives it modules and lets it load the handler; what its memory is then is the image that calls begin
// with. Nothing is freed at the end of a call: the whole memory goes.

#include "guest.h"

static JSRuntime *runtime;
static JSContext *context;
// What the prelude gives the host to call.
static JSValue start, settle, bind, fail, fail_to_load;
static size_t memory_limit;
static const char *entry;

// Every module that there is, by name. What a handler imports later has been read by then, and only runs: QuickJS does not
// survive a lack of memory while it reads.
static struct module {
    char *name;
    text_t bytecode;
    JSModuleDef *definition;
    struct module *next;
} *modules;

// Reads a module, which makes QuickJS look for what it imports.
static JSModuleDef *read_module(struct module *module) {
    if (!module->bytecode.bytes) return module->definition;
    text_t bytecode = module->bytecode;
    module->bytecode.bytes = NULL;
    JSValue value = JS_ReadObject(context, (uint8_t *)bytecode.bytes, bytecode.length, JS_READ_OBJ_BYTECODE);
    release(bytecode);
    return module->definition = JS_IsException(value) ? NULL : JS_VALUE_GET_PTR(value);
}

static JSModuleDef *load_declared(JSContext *ctx, const char *name, void *opaque) {
    for (struct module *module = modules; module; module = module->next)
        if (!strcmp(module->name, name)) return read_module(module);
    JS_ThrowReferenceError(ctx, "there is no file %s", name);
    return NULL;
}

EXPORT("boot") uint32_t boot(size_t stack_limit) {
    __wasm_call_ctors();
    runtime = JS_NewRuntime();
    if (!runtime) return 0;
    JS_SetMaxStackSize(runtime, stack_limit);
    JS_SetModuleLoaderFunc(runtime, resolve_import, load_declared, NULL);
    context = JS_NewContextRaw(runtime);
    // No `eval`: there is no parser to be reached.
    return context && !JS_AddIntrinsicBaseObjects(context) && !JS_AddIntrinsicDate(context) &&
           !JS_AddIntrinsicRegExp(context) && !JS_AddIntrinsicJSON(context) && !JS_AddIntrinsicProxy(context) &&
           !JS_AddIntrinsicMapSet(context) && !JS_AddIntrinsicTypedArrays(context) && !JS_AddIntrinsicPromise(context) &&
           !JS_AddIntrinsicBigInt(context) && !JS_AddIntrinsicWeakRef(context);
}

// Declares a module under a name. Both texts are the host's, and stay with the module.
EXPORT("declare") uint32_t declare(char *name, char *bytecode, size_t length) {
    struct module *module = malloc(sizeof *module);
    if (!module) return 0;
    *module = (struct module){name, {bytecode, length}, NULL, modules};
    modules = module;
    return 1;
}

// Runs what has become ready, as an event loop would.
static void run_jobs(void) {
    JSContext *ctx;
    int done = 1;
    while (!ending() && (done = JS_ExecutePendingJob(runtime, &ctx)) > 0) {}
    // A job that fails has had no memory for its own promise.
    if (done < 0) end_without_memory();
}

// Hands what was thrown to the prelude.
static void report_thrown(JSValue to, JSValue thrown) {
    JSValue reported = JS_Call(context, to, JS_UNDEFINED, 1, &thrown);
    if (JS_IsException(reported)) end_without_memory();
    JS_FreeValue(context, reported);
    JS_FreeValue(context, thrown);
}

// Calls the prelude, which catches what handlers throw: an exception that comes back is an engine at its end.
static place_t enter(JSValue function, int argc, JSValueConst *argv) {
    JSValue returned = JS_Call(context, function, JS_UNDEFINED, argc, argv);
    if (JS_IsException(returned)) report_thrown(fail, JS_GetException(context));
    run_jobs();
    return ending();
}

// Evaluates a declared module and returns its namespace, or an exception.
static JSValue evaluate(JSModuleDef *definition) {
    JSValue module = JS_MKPTR(JS_TAG_MODULE, definition);
    if (JS_ResolveModule(context, module) < 0) return JS_EXCEPTION;
    JSValue promise = JS_EvalFunction(context, JS_DupValue(context, module));
    if (JS_IsException(promise)) return promise;
    run_jobs();
    switch (JS_PromiseState(context, promise)) {
    case JS_PROMISE_REJECTED:
        return JS_Throw(context, JS_PromiseResult(context, promise));
    case JS_PROMISE_PENDING:
        return JS_ThrowPlainError(context, "the top level of the handler never finishes");
    default:
        return JS_GetModuleNamespace(context, definition);
    }
}

// A function of a module of the host's own.
static JSValue function_of(const char *module, const char *name) {
    JSModuleDef *definition = load_declared(context, module, NULL);
    JSValue namespace = definition ? evaluate(definition) : JS_EXCEPTION;
    return JS_IsException(namespace) ? namespace : JS_GetPropertyStr(context, namespace, name);
}

enum install { INSTALL_WEB = 1, INSTALL_ABORT = 2 };

// Runs the host's own modules: the prelude, and what the handler uses of the others. `settings` is JSON for the prelude.
EXPORT("install") uint32_t install(char *settings, size_t length, uint32_t what) {
    JSValue host = new_host_object(context);
    JSValue prepare_args[] = {host, JS_ParseJSON(context, settings, length, "settings")};
    release((text_t){settings, length});
    JSValue calls = JS_Call(context, function_of("quarterdeck:prelude", "prepare"), JS_UNDEFINED, 2, prepare_args);
    if (JS_IsException(calls)) return 0;
    start = JS_GetPropertyStr(context, calls, "start");
    settle = JS_GetPropertyStr(context, calls, "settle");
    bind = JS_GetPropertyStr(context, calls, "bind");
    fail = JS_GetPropertyStr(context, calls, "fail");
    fail_to_load = JS_GetPropertyStr(context, calls, "failToLoad");
    if (what & INSTALL_WEB) {
        JSValue args[] = {host, calls};
        JSValue done = JS_Call(context, function_of("quarterdeck:web", "installWeb"), JS_UNDEFINED, 2, args);
        if (JS_IsException(done)) return 0;
    }
    if (what & INSTALL_ABORT) {
        JSValue args[] = {host, JS_GetPropertyStr(context, calls, "bindSignal")};
        JSValue done = JS_Call(context, function_of("quarterdeck:abort", "installAbort"), JS_UNDEFINED, 2, args);
        if (JS_IsException(done)) return 0;
    }
    return 1;
}

// Says which module is the handler's and how much memory it may use, and reads all that there are. `load` is next, here or in a
// call. Returns zero, or the place of an end that says why it cannot be loaded.
EXPORT("prepare") place_t prepare(char *name, size_t limit) {
    entry = name;
    memory_limit = limit;
    for (struct module *module = modules; module; module = module->next)
        if (!read_module(module)) {
            report_thrown(fail_to_load, JS_GetException(context));
            return ending();
        }
    JS_RunGC(runtime);
    // Most calls end before there is anything worth collecting.
    JS_SetGCThreshold(runtime, limit / 4 < (4u << 20) ? limit / 4 : 4u << 20);
    return 0;
}

// Runs the top level of the handler's modules. Returns zero, or the place of an end that says why it cannot be loaded.
EXPORT("load") place_t load(void) {
    JSModuleDef *definition = load_declared(context, entry, NULL);
    entry = NULL;
    // From here on code of the handler's runs; what set the engine up did not expect a limit.
    JS_SetMemoryLimit(runtime, memory_limit);
    JSValue namespace = definition ? evaluate(definition) : JS_EXCEPTION;
    JSValue execute = JS_IsException(namespace) ? namespace : JS_GetPropertyStr(context, namespace, "execute");
    if (!JS_IsException(execute) && !JS_IsFunction(context, execute))
        execute = JS_ThrowTypeError(context, "the handler does not export a function `execute`");
    if (JS_IsException(execute)) {
        report_thrown(fail_to_load, JS_GetException(context));
        return ending();
    }
    enter(bind, 1, &execute);
    // The memory may become an image.
    if (!ending()) JS_RunGC(runtime);
    return ending();
}

// Runs until the handler has ended or waits. A handler that is not loaded yet is loaded first.
EXPORT("execute") place_t execute(char *args, size_t length) {
    if (entry && load()) return ending();
    JSValue argument = JS_ParseJSON(context, args, length, "args");
    release((text_t){args, length});
    if (JS_IsException(argument)) {
        report_thrown(fail, JS_GetException(context));
        return ending();
    }
    return enter(start, 1, &argument);
}

// Goes on with the result of a request.
EXPORT("resume") place_t resume(uint32_t id, char *result, size_t length) {
    JSValue args[] = {JS_NewUint32(context, id), JS_ParseJSON(context, result, length, "result")};
    release((text_t){result, length});
    if (JS_IsException(args[1])) {
        report_thrown(fail, JS_GetException(context));
        return ending();
    }
    return enter(settle, 2, args);
}
