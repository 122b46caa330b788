#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>

enum { STACK_BYTES = 256 * 1024 }; /* kernels' frames are fat under AddressSanitizer */

/* Absent unless a sanitizer is linked in. NOLINTBEGIN(bugprone-reserved-identifier) */
#define WEAK __attribute__((weak))
WEAK void *__tsan_create_fiber(unsigned flags);
WEAK void *__tsan_get_current_fiber(void);
WEAK void __tsan_switch_to_fiber(void *fiber, unsigned flags);
WEAK void __tsan_acquire(void *mark);
WEAK void __tsan_release(void *mark);
WEAK void __sanitizer_start_switch_fiber(void **save, const void *stack, size_t bytes);
WEAK void __sanitizer_finish_switch_fiber(void *saved, const void **stack, size_t *bytes);
/* NOLINTEND(bugprone-reserved-identifier) */

enum { SWITCH_WITHOUT_ORDER = 1 };

static struct fiber *left; /* the fiber switched away from last */

#ifdef FIBER_X86_64
/* Saves the registers that the System V ABI preserves on the old stack, then pops them from the new
 * one. */
void fiber_swap_stacks(void **save, void *load);
__asm__(".text\n"
        ".globl fiber_swap_stacks\n"
        ".hidden fiber_swap_stacks\n"
        ".type fiber_swap_stacks, @function\n"
        "fiber_swap_stacks:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size fiber_swap_stacks, . - fiber_swap_stacks\n");

static void stack_prepare(struct fiber *fiber, char *stack, void (*entry)(void))
{
    /* ret finds entry above six saved registers; after it the stack is 8 off 16, as on a call. */
    uintptr_t *top = (uintptr_t *)(void *)(stack + STACK_BYTES - 64);
    top[0] = (uintptr_t)entry;
    top[1] = 0;
    fiber->stack_pointer = top - 6;
}

static void stack_switch(struct fiber *from, struct fiber *to)
{
    fiber_swap_stacks(&from->stack_pointer, to->stack_pointer);
}
#else
static void stack_prepare(struct fiber *fiber, char *stack, void (*entry)(void))
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, entry, 0);
}

static void stack_switch(struct fiber *from, struct fiber *to)
{
    swapcontext(&from->context, &to->context);
}
#endif

void fiber_adopt_caller(struct fiber *fiber)
{
    *fiber = (struct fiber){0};
    if (__tsan_get_current_fiber)
        fiber->tsan = __tsan_get_current_fiber();
}

bool fiber_create(struct fiber *fiber, void (*entry)(void))
{
    char *stack = aligned_alloc(64, STACK_BYTES);
    if (!stack)
        return false;
    *fiber = (struct fiber){.stack = stack, .stack_bytes = STACK_BYTES};
    stack_prepare(fiber, stack, entry);
    if (__tsan_create_fiber)
        fiber->tsan = __tsan_create_fiber(0);
    return true;
}

/* The caller's stack has no known bounds until the first switch away from it reports them. */
static void arrived(void *saved)
{
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(saved, &left->stack, &left->stack_bytes);
}

void fiber_entered(void)
{
    arrived(NULL);
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
    left = from;
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(to->tsan, SWITCH_WITHOUT_ORDER);
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&from->asan, to->stack, to->stack_bytes);
    stack_switch(from, to);
    arrived(from->asan);
}

void fiber_release(void *mark)
{
    if (__tsan_release)
        __tsan_release(mark);
}

void fiber_acquire(void *mark)
{
    if (__tsan_acquire)
        __tsan_acquire(mark);
}
