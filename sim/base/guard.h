/* Names the plug-in or engine whose code crashes, ends the program or does not return.
 *
 * A thread marks each call into such code: one store before the call and one after it. The marks
 * are read by a signal handler, at the end of the program, and at the end of a thread. */
#ifndef SIM_BASE_GUARD_H
#define SIM_BASE_GUARD_H

/* A call: module is like "batching policy NAME of FILE.so", call like "plan"; hint is printed after
 * the use in the call of an address that no program has, from 2^61 on, or NULL. All texts must
 * outlive the program's last call. */
struct guard_call {
    const char *module, *call, *hint;
};

/* From now on, until the program ends:
 * - SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT print a line with the call in which they occurred,
 * then do what they would have done. A stack overflow does so, too. If the marks are destroyed, the
 * line has no name.
 * - exit() or the end of a thread within a call prints such a line and ends the program with
 * status 1.
 *
 * May be called again. */
void guard_arm(void);
/* Sets the text with which messages begin, to erase a line that is half drawn. The text must
 * outlive the program's last call. */
void guard_erase_with(const char *text);

/* Sets the call in which the program is counted to be once it has ended itself: destructors of
 * plug-ins run then. */
void guard_end_in(const struct guard_call *call);

/* Marks that the calling thread is in `call`. Returns the call in which it was before, for
 * guard_leave; NULL: none. The first call of a thread allocates memory. */
const struct guard_call *guard_enter(const struct guard_call *call);
void guard_leave(const struct guard_call *before);

/* Writes the line "inflight: interrupted again; NAME is in CALL" for the first thread that is in a
 * call. Safe in a signal handler. */
void guard_tell_interrupted(void);

#endif
