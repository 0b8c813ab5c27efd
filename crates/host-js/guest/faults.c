// Mistakes of the kind that C allows, for the build of the guest that our tests run. The product is linked without this file.

#include "guest.h"

#define NOT_INLINED __attribute__((noinline))

// Overwrites what lies behind a block of the heap, up to the end of the memory and beyond.
static void write_past_the_end(void) {
    volatile uint8_t *block = malloc(16);
    for (size_t at = 0;; at++) block[at] = 0xa5;
}

// Where the linker puts the heap.
extern uint8_t __heap_base;

// Overwrites what QuickJS has put on the heap until now, and goes on as if nothing had happened.
static void overwrite_the_heap(void) {
    uint8_t *block = malloc(16);
    memset(&__heap_base, 0xff, block - &__heap_base);
}

// Calls whatever an overwritten pointer to a function points to.
static void call_nothing(void) {
    void (*volatile function)(void) = (void (*)(void))(uintptr_t)0x7ffffff0;
    function();
}

// Reads where there is no memory.
static void read_nowhere(void) { (void)*(volatile uint8_t *)(uintptr_t)0xfffffff0; }

// Never returns, without the engine's own check of its stack.
static NOT_INLINED int recurse(volatile int depth) {
    volatile uint8_t frame[1 << 10];
    frame[0] = (uint8_t)depth;
    return recurse(depth + 1) + frame[0];
}

void inject_fault(const char *name) {
    if (!strcmp(name, "write")) write_past_the_end();
    if (!strcmp(name, "overwrite")) overwrite_the_heap();
    if (!strcmp(name, "call")) call_nothing();
    if (!strcmp(name, "read")) read_nowhere();
    if (!strcmp(name, "recurse")) recurse(0);
    if (!strcmp(name, "loop")) for (volatile int i = 0;; i++) {}
}
