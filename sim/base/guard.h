/* Code that comes from elsewhere, plug-ins and engines, is named when it crashes, ends the program
 * or does not return.
 *
 * A thread marks each call into such code: one store before it, one behind it. The marks are read
 * by a signal handler, at the end of the program, and at the end of a thread. */
#ifndef SIM_BASE_GUARD_H
#define SIM_BASE_GUARD_H

/* A call: "batching policy NAME of FILE.so", "plan", and what is said behind a crash in it, or
 * NULL. All outlive the program's last call. */
struct guard_call {
    const char *module, *call, *hint;
};

/* From here on, until the program ends:
 * - SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT say in one line which call they were in, then do
 *   what they would have done. A stack that overflows does so, too.
 * - exit() or the end of a thread within a call says so and ends the program with status 1.
 *
 * May be called again. */
void guard_arm(void);
/* What messages begin with, to erase a line that is half drawn; outlives the program's last call.
 */
void guard_erase_with(const char *text);

/* What runs at the end of the program, behind all that it does itself: destructors of plug-ins. */
void guard_end_in(const struct guard_call *call);

/* The calling thread is in `call` now. Returns the call that it was in before, for guard_leave;
 * NULL: none. The first call of a thread allocates. */
const struct guard_call *guard_enter(const struct guard_call *call);
void guard_leave(const struct guard_call *before);

/* Writes the line "inflight: interrupted again; NAME is in CALL" for the first thread that is in a
 * call. Safe in a signal handler. */
void guard_tell_interrupted(void);

#endif
