// What the files of the guest have in common: the engine's side of the interface between QuickJS and the host.
//
// The guest is QuickJS compiled to WebAssembly with these files around it. It has two roles. One instance compiles sources to
// bytecode and looks at handlers before a build (`compiler.c`); others are given bytecode only and run handlers (`runner.c`).

#ifndef QUARTERDECK_GUEST_H
#define QUARTERDECK_GUEST_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "quickjs.h"

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))

// The interface of every handler in WebAssembly: docs/WASM.md.
IMPORT("quarterdeck", "call")
extern uint32_t host_call(const char *name, size_t name_length, const char *args, size_t args_length);
IMPORT("quarterdeck", "log") extern void host_log(uint32_t level, const char *text, size_t length);
IMPORT("quarterdeck", "now") extern int64_t host_now(void);
IMPORT("quarterdeck", "random") extern void host_random(uint8_t *target, size_t length);

// What JavaScript needs besides. `host_ask` returns the length of an answer that is ready at once, `host_take` copies it.
IMPORT("javascript", "ask")
extern uint32_t host_ask(uint32_t question, const char *a, size_t a_length, const char *b, size_t b_length, const char *c,
                         size_t c_length);
IMPORT("javascript", "take") extern void host_take(uint8_t *target);

// The questions that C asks. Those of the prelude have the numbers after them; all are in `src/question.rs`.
enum question {
    QUESTION_RESOLVE = 0,
    QUESTION_SOURCE = 1,
    QUESTION_SYNTAX_ERROR = 2,
};

// A text of the host's or for it.
typedef struct {
    char *bytes;
    size_t length;
} text_t;

// An answer of the host's, which the caller frees. Its bytes are NULL when there is no memory.
text_t ask(enum question question, text_t a, text_t b, text_t c);
text_t text_of(const char *bytes);

// How a result is handed to the host: the address in the upper half, the length in the lower one; zero for none.
typedef uint64_t place_t;
place_t place_of(const void *bytes, size_t length);

// Records how the instance has come to an end: what kind of end, a text and a stack. Only the first one counts.
void end_with(text_t kind, text_t text, text_t stack);
// The place of the end, or zero while there is none.
place_t ending(void);
// The end of an instance without memory for another.
void end_without_memory(void);

// What the libc sets up before anything else. Called by name, the linker does not call it around every export.
extern void __wasm_call_ctors(void);

// Frees what the host wrote through `allocate`.
void release(text_t input);

// Follows an import through the host, for both roles.
char *resolve_import(JSContext *ctx, const char *base, const char *specifier, void *opaque);

// The object `host` of the prelude.
JSValue new_host_object(JSContext *ctx);

#ifdef WITH_FAULTS
// Does to the memory what a mistake in the engine would do.
void inject_fault(const char *name);
#endif

#endif
