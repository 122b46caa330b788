/* Stackful coroutines that report their switches to the sanitizers.
 *
 * A switch orders no memory accesses in ThreadSanitizer's eyes: two fibers are two threads, and
 * only fiber_release and fiber_acquire on a common mark make one happen before the other. */
#ifndef GPU_SIMT_FIBER_H
#define GPU_SIMT_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define FIBER_X86_64 1
#else
#include <ucontext.h>
#endif

struct fiber {
#ifdef FIBER_X86_64
    void *stack_pointer; /* while switched out; its frame holds the saved registers */
#else
    ucontext_t context;
#endif
    void *tsan, *asan;
    const void *stack; /* lowest address */
    size_t stack_bytes;
};

/* Makes the caller's own stack a fiber, so that other fibers can switch back to it. */
void fiber_adopt_caller(struct fiber *fiber);
/* Prepares a fiber that will run entry(), which never returns. False without memory. The stack
 * lives until the process ends. */
bool fiber_create(struct fiber *fiber, void (*entry)(void));
/* entry() must call this first. */
void fiber_entered(void);
void fiber_switch(struct fiber *from, struct fiber *to);

void fiber_release(void *mark);
void fiber_acquire(void *mark);

#endif
